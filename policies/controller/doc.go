// Package controller is what the policy engine needs of the cluster: it hands
// every WorkloadPolicy to the engine on every replica, and has the leader write
// into each policy's status what became of it.
//
// The engine itself, in package policies, knows nothing of a cluster.
package controller
