package ray

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/test/fixtures"
)

var update = flag.Bool("update", false, "write testdata/*.output.yaml")

// TestChildren compares all that is made of each testdata/*.input.yaml with its
// *.output.yaml.
func TestChildren(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.input.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, input := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(input), ".input.yaml"), func(t *testing.T) {
			got := childrenOf(t, readCluster(t, input))
			file := strings.TrimSuffix(input, ".input.yaml") + ".output.yaml"
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("children (-want +got), -update writes them:\n%s", diff)
			}
		})
	}
}

func readCluster(t *testing.T, file string) *v1.RayCluster {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cluster := &v1.RayCluster{}
	if err := yaml.UnmarshalStrict(text, cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Namespace, cluster.UID = fixtures.Namespace, "cluster-uid"
	return cluster
}

func childrenOf(t *testing.T, cluster *v1.RayCluster) string {
	t.Helper()
	result := Plan(cluster, plan.Observed{}, fixtures.Start)
	var parts []string
	add := func(child any) {
		text, err := yaml.Marshal(child)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, string(text))
	}
	for _, child := range result.Apply {
		add(child)
	}
	for _, child := range result.Generate {
		add(child.Child)
	}
	for _, child := range result.Create {
		add(child)
	}
	return strings.Join(parts, "---\n")
}
