package policies_test

import (
	"testing"

	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/library"
)

func TestLibraryCompiles(t *testing.T) {
	loaded, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range loaded {
		if _, err := policies.Compile(p); err != nil {
			t.Errorf("%s:\n%v", p.Name, err)
		}
	}
}
