// Package policies is the policy engine: step 6 of the flow. It compiles the
// Rego of WorkloadPolicies off the request path and judges requests by an
// immutable snapshot of them.
//
// A request passes four gates, each cheaper than the next: the index by
// (group, kind, operation, subresource), the excludes, selectors and
// exceptions of the policies found there, the parse of the object into one
// Rego value that all policies share, and the rules themselves.
//
// The package is pure. It knows neither HTTP nor the cluster; what it needs
// of them (namespace labels, the time) is handed in with each request. It must
// not import controller-runtime, client-go or any other room but api/v1.
package policies
