// Package controller is what the policy engine needs of the cluster. In the
// order of a policy's way into force, the files are:
//
//   - loader.go: every replica hands every WorkloadPolicy to its engine;
//   - rules.go: which webhooks ask about what the policies match, worked out by
//     a pure function; collection.go, what one policy needs; mergedrules.go, how
//     the rules of several become ones that the API server takes; coverage.go,
//     what that means for each policy;
//   - webhookconfiguration.go: the leader keeps the configuration at that, and
//     probes that the API server works by it;
//   - servedkinds.go: which kinds are served, as they are spelt;
//   - authors.go: what the author of a policy must be allowed to read; which
//     kinds that are, by the pure readkinds.go;
//   - preview.go: what a policy would mean for stored objects, for its author;
//     counted and put into words by the pure tally.go and strayfields.go;
//   - inventory.go: every replica keeps the objects that policies read at those of
//     the cluster; inventorymetrics.go counts them;
//   - status.go: the leader writes into each policy what became of it.
//
// How stored objects are judged is in package stored. What audits them is package
// audit, known here as an interface. The engine itself, in package policies, knows
// nothing of a cluster.
package controller
