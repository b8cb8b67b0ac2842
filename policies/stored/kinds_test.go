package stored

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

func TestKinds(t *testing.T) {
	policy := matching(on("", "Pod"), on("", "Pod", "", "resize"), on("apps", "Deployment", "scale"), on("", "Node"), on("gone.example", "Thing"),
		on("apps", "*"), on(v1.GroupName, "*"), upstream)
	found, unseen, err := Kinds(&policy.Spec, kinds)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range found {
		names = append(names, one.GroupVersionKind.Kind+" "+one.Resource.Resource)
	}
	want := []string{"Pod pods", "TrainingJob trainingjobs", "PyTorchJob pytorchjobs", "MPIJob mpijobs"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if len(unseen) != 1 || unseen[0].Kind != "*.apps" {
		t.Errorf("unseen: %v", unseen)
	}
	policy = matching(on("", "Unreachable"))
	if _, _, err := Kinds(&policy.Spec, kinds); err == nil {
		t.Error("it is not known which kinds are served")
	}
}
