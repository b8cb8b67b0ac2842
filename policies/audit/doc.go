// Package audit judges stored objects as they and the policies change, and tells what
// it finds in reports on the objects, in metrics and, by package controller, in the
// status of policies. In the order of what becomes known, the files are:
//
//   - auditor.go: the leader follows the policies in force, with the kinds that they
//     judge;
//   - watch.go: each object is judged as it changes; content.go, whether there is
//     anything to judge;
//   - triggers.go: what else has objects judged again; scan.go, all of a kind or a
//     namespace, or one whose exception has ended;
//   - object.go: the pure sorting of what is said of one object;
//   - results.go: the pure account of all of them;
//   - status.go: that account, for the status of policies and for metrics; publish.go,
//     when;
//   - report.go, reporter.go: reports on the objects, and keeping them up.
//
// How one object is judged is in package stored. It must not import package
// controller, which wakes it and asks it for results.
package audit
