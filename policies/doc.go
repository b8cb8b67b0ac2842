// Package policies is the policy engine: step 6 of the flow. It compiles the
// Rego of WorkloadPolicies off the request path and judges requests by an
// immutable snapshot of them.
//
// A request passes four gates, each cheaper than the next: the index by
// (group, kind, operation, subresource), the excludes, selectors and
// exceptions of the policies found there, the parse of the object into one
// Rego value that all policies share, and the rules themselves.
//
// In the order of a policy's life, the files are:
//
//   - policy.go, modules.go, rule.go, ruletable.go, match.go, pattern.go, parameters.go,
//     exceptions.go: what a WorkloadPolicy is compiled to; reads.go, what its rule
//     looks at, objectreads.go, of the object; inputreads.go, datareads.go, what it
//     reads by name, and would if it were there; valueflow.go, valuepaths.go, how
//     that is followed through variables, functions and rules;
//     operationreads.go, which operations it looks for; objecttexts.go, where it takes
//     an object for a text;
//     capabilities.go, what it may call; compileerror.go, what is wrong with it;
//   - engine.go, snapshot.go, index.go: the policies in force;
//   - scope.go: which of them a webhook of the API server asks; reach.go, what it
//     never asks about; subresources.go, by which operations it asks;
//   - request.go, judge.go: one request, from the index to the verdict; objectlabels.go,
//     whose labels decide;
//   - input.go, value.go: its objects as one Rego value;
//   - attempt.go, worker.go, evaluate.go: running rules within their time; decide.go,
//     needs.go, what they find without what a request lacks; cut.go, when the time
//     or the memory is over; bounds.go, boundsregex.go, what one call
//     of a builtin may take; guard.go, guardrun.go: telling that one has nothing to say;
//   - inventory.go, inventoryview.go: the cluster objects that rules read as
//     data.inventory; ordered.go, the map that they are kept in;
//     inventoryreads.go, inventorypath.go, projection.go, which of their fields;
//   - ratchet.go, place.go, faultsite.go, verdict.go: what counts of what they found,
//     where that is, and whether it can be where a rule says; printable.go, as it is shown;
//   - explain.go, mask.go: how it was found, for offline checks;
//   - workload.go, devices.go, workloadcount.go, workloadselect.go,
//     workloadplace.go, workloadnodes.go, workloadcall.go, sharedcache.go: the shared library
//     data.penstock.workload, computed once for all rules. Its Rego text is the
//     definition, and tests hold these to it; librarypart.go, how much of it is
//     compiled with a policy.
//
// The folder secrets finds what of texts is not to be shown, regotest runs tests that
// are written in Rego, and library holds the policies that come with Penstock.
// What feeds the engine from a cluster is in controller, what judges stored objects
// by it in audit, and what both share of that in stored.
//
// The package is pure. It knows neither HTTP nor the cluster; what it needs
// of them (namespace labels, the time) is handed in with each request. It must
// not import controller-runtime, client-go or any other room but api/v1.
package policies
