// Package webhooks is what the API server talks to: steps 3, 5 and 6 of the
// flow. It fills in defaults, and judges each object by the invariants of its
// kind and by the organisation's policies together, because the API server
// reports the refusal of one webhook only.
//
// A Gate does the deciding: given an AdmissionRequest it gives the response,
// and knows no HTTP. Handlers in server.go do the rest: they bound what comes
// in, decode it once, and answer whatever happens. The command line's check
// asks the same Gate, so it gives the cluster's verdict in the cluster's words.
//
// Requests for Penstock's own kinds come by gate.go, those for any other kind that a
// policy names by judge.go; parent.go reads what a subresource belongs to, and
// authorizer.go asks what users may do, where a condition does. transitions.go tells
// apart what is wrong with an update from what is wrong with its object.
//
// What the author of a policy is told of it begins in workloadpolicy.go: podguard.go
// and plainpods.go, whether it could keep a cluster from starting; policyreads.go and
// policyhints.go, what its Rego and its conditions read that is not there;
// policyoperations.go, policysubresources.go, policyoldobject.go and policyreach.go,
// what it is never asked about; overridetypes.go, what an override makes of
// parameters.
//
// decisionlog.go writes what was said into OPA's decision log, without what
// decisionmask.go takes out of the input and decisionhide.go out of texts.
//
// What is pure lives below: defaulting, validation. This package may not know
// v1alpha1; it asks conversion for the path of a field in the version that a
// request was made in.
package webhooks
