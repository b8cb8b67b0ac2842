package policies

import (
	"testing"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// A subresource is asked about by operations of its own: connections are neither
// creations nor updates, and what is only read comes by none.
func TestAskedOn(t *testing.T) {
	for _, tc := range []struct {
		group, subresource string
		operations         []v1.PolicyOperation
		want               bool
	}{
		{"", "exec", nil, false},
		{"", "attach", []v1.PolicyOperation{v1.OperationCreate, v1.OperationUpdate, v1.OperationDelete}, false},
		{"", "portforward", []v1.PolicyOperation{v1.OperationConnect}, true},
		{"*", "proxy", nil, false},
		{"*", "proxy", []v1.PolicyOperation{v1.OperationUpdate, v1.OperationConnect}, true},
		{"", "log", operations, false},
		{"", "", nil, true},
		{"", "", []v1.PolicyOperation{v1.OperationConnect}, false},
		{"apps", "", []v1.PolicyOperation{v1.OperationDelete}, true},
		{"apps", "scale", nil, true},
		{"apps", "status", nil, true},
		{v1.GroupName, "status", nil, false},
		{v1.GroupName, "scale", nil, true},
		{"apps", "scale", []v1.PolicyOperation{v1.OperationDelete}, false},
		{"", "eviction", []v1.PolicyOperation{v1.OperationCreate}, true},
		{"", "ephemeralcontainers", []v1.PolicyOperation{v1.OperationCreate}, false},
		{"subresources.kubevirt.io", "console", nil, true}, // only its own API server knows
		{"subresources.kubevirt.io", "log", nil, true},
		{"", "*", nil, true},
	} {
		if got := AskedOn(&v1.PolicyMatch{Operations: tc.operations}, tc.group, tc.subresource); got != tc.want {
			t.Errorf("%v of %q in group %q: %v, want %v", tc.operations, tc.subresource, tc.group, got, tc.want)
		}
	}
}
