// Package policy is what penstock policy does: import.go, template.go and
// constraint.go turn Gatekeeper's templates and constraints into
// WorkloadPolicies; suite.go runs Gatekeeper's test suites by them.
package policy
