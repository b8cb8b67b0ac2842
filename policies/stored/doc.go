// Package stored is what preview and audit share: how objects that are stored are
// judged by a snapshot of policies, and how that is told. In the order in which they
// come to it, the files are:
//
//   - mapper.go: who knows which kinds the API server serves;
//   - kinds.go: the kinds whose stored objects a policy judges;
//   - judge.go: one object, as if it were written now, and whether a policy judges any;
//   - wording.go: what was found, for people.
//
// The package reads nothing of the cluster: objects, the labels of namespaces and the
// time are handed in. It must not import controller-runtime or client-go.
package stored
