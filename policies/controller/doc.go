// Package controller is what the policy engine needs of the cluster. In the
// order of a policy's way into force, the files are:
//
//   - loader.go: every replica hands every WorkloadPolicy to its engine;
//   - rules.go: which webhooks ask about what the policies match, worked out by
//     a pure function; collection.go, what one policy needs; coverage.go, what
//     that means for each policy;
//   - webhookconfiguration.go: the leader keeps the configuration at that, and
//     probes that the API server works by it;
//   - servedkinds.go: which kinds are served, as they are spelt;
//   - authors.go: what the author of a policy must be allowed to read; which
//     kinds that are, by the pure readkinds.go;
//   - preview.go: what a policy would mean for stored objects, for its author;
//     counted and put into words by the pure tally.go and strayfields.go;
//   - inventory.go: every replica keeps the objects that policies read at those of
//     the cluster; inventorymetrics.go counts them;
//   - stored.go: how stored objects are judged, and which kinds;
//   - audit.go: the leader judges stored objects as they and the policies change;
//     auditwatch.go, each as it changes, auditscan.go, all of a kind or a namespace
//     again; audittriggers.go, what else has them judged again; auditcontent.go,
//     whether there is anything to judge. The pure auditobject.go sorts what is
//     said of one object, auditresults.go keeps that of all, auditstatus.go puts it
//     together for the status of policies and for metrics, auditpublish.go decides
//     when;
//   - report.go, reporter.go: reports on the objects, and keeping them up;
//   - status.go: the leader writes into each policy what became of it.
//
// The engine itself, in package policies, knows nothing of a cluster.
package controller
