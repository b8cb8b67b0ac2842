package library_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies/library"
)

const manifestDir = "../../config/policies"

func TestManifestsAreUpToDate(t *testing.T) {
	want, err := library.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	for name, manifest := range want {
		got, err := os.ReadFile(filepath.Join(manifestDir, name))
		if err != nil {
			t.Errorf("%v: run go generate ./policies/library", err)
			continue
		}
		if diff := cmp.Diff(string(manifest), string(got)); diff != "" {
			t.Errorf("%s is out of date, run go generate ./policies/library (-want +got):\n%s", name, diff)
		}
	}
	present, err := filepath.Glob(filepath.Join(manifestDir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(present) != len(want) {
		t.Errorf("%s holds %d files, want %d", manifestDir, len(present), len(want))
	}
}

func TestRegoIsShownAsABlock(t *testing.T) {
	loaded, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range loaded {
		// This is how kubectl edit shows it.
		shown, err := yaml.Marshal(policy)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(shown), "\n  rego: |\n") {
			t.Errorf("%s: kubectl would not show the Rego as a block:\n%s", policy.Name, shown)
		}
	}
}

func TestManifestsHoldThePolicies(t *testing.T) {
	manifests, err := library.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded) == 0 {
		t.Fatal("the library is empty")
	}
	for _, want := range loaded {
		got := &v1.WorkloadPolicy{}
		if err := yaml.UnmarshalStrict(manifests[want.Name+".yaml"], got); err != nil {
			t.Errorf("%s: %v", want.Name, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-policy +manifest):\n%s", want.Name, diff)
		}
	}
}
