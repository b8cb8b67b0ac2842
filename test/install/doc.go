// Package install puts Penstock's own manifests, those of config, into a cluster for a manager that runs beside the
// cluster instead of in it: webhooks are called at a URL of this machine, and there is no Deployment. Integration
// tests, the end-to-end test, benchmarks and the local run all install by it, so all of them hold what config ships to a
// real API server, RBAC included.
//
// The order is: Apply, start the manager, and Policies once it is ready. In between, writes of Penstock's kinds fail.
package install
