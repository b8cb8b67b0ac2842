// Package cluster starts and stops a real Kubernetes control plane on this machine: etcd, kube-apiserver and, on
// request, kube-controller-manager, kube-scheduler and nodes with GPUs that kwok simulates. Integration tests, the
// end-to-end test, benchmarks and the local run all use it.
//
// The binaries come from test/controlplane ("make controlplane"), or from KUBEBUILDER_ASSETS. Everything listens on
// 127.0.0.1, on free ports, and is gone after Stop, or when the process that started it dies.
//
// A simulated pod runs as its annotations say; see the Simulate constants. Without any, a pod that restarts Always
// runs until it is deleted, and every other pod succeeds after ten seconds.
package cluster
