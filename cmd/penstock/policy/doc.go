// Package policy is what penstock policy does.
//
//   - import.go, template.go, constraint.go and defaults.go turn Gatekeeper's templates and
//     constraints into WorkloadPolicies, without the nulls that nulls.go finds;
//   - test.go runs tests, which discover.go finds: regotests.go those in Rego,
//     cases.go and request.go the cases beside policies, which folder.go reads,
//     and suite.go Gatekeeper's suites;
//   - testreport.go and coverage.go say what became of them.
package policy
