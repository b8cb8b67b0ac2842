package ray

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// TestNamesAreNeverTheSame: pitfalls 1 to 3. Clusters and groups whose names
// begin and end alike, or are long, have children of different names, all of
// them valid as names of hosts and values of labels.
func TestNamesAreNeverTheSame(t *testing.T) {
	long := strings.Repeat("a", 52)
	clusters := []string{"a", "a-b", "a-b-c", "a-0", "a--b", "a-0-0", long + "x", long + "y", "a-head", "a-b-0"}
	groups := []v1.RoleName{"b", "b-c", "c", "0", "b--c", "GPU", "head", "0-0", v1.RoleName(strings.Repeat("g", 62) + "1"), v1.RoleName(strings.Repeat("g", 62) + "2"), "b-0"}
	seen := map[string]string{}
	add := func(name, of string) {
		t.Helper()
		if before, ok := seen[name]; ok {
			t.Errorf("%s is of %s and of %s", name, before, of)
		}
		seen[name] = of
		if faults := validation.IsDNS1123Label(name); len(faults) > 0 {
			t.Errorf("%s of %s: %v", name, of, faults)
		}
	}
	for _, name := range clusters {
		cluster := fixtures.RayCluster(name)
		add(headName(cluster), name)
		for _, group := range groups {
			for _, place := range [][2]int32{{0, 0}, {0, 1}, {1, 0}, {100000, 9999}} {
				pod := workerName(cluster, group, place[0], place[1])
				add(pod, fmt.Sprintf("%s/%s/%v", name, group, place))
				replica, host, ok := placeOf(groupBase(cluster, group), pod)
				if !ok || replica != place[0] || host != place[1] {
					t.Errorf("%s is read as %d, %d, %v", pod, replica, host, ok)
				}
			}
		}
		for _, other := range []string{cleanupName(cluster), ingressName(cluster), fitted(cluster, "-ray"), headServiceName(cluster), headlessName(cluster), serveServiceName(cluster)} {
			if faults := validation.IsDNS1123Label(other); len(faults) > 0 {
				t.Errorf("%s: %v", other, faults)
			}
		}
		for key, value := range podLabels(cluster, &cluster.Spec.Roles[1]) {
			if faults := validation.IsValidLabelValue(value); len(faults) > 0 {
				t.Errorf("label %s=%s: %v", key, value, faults)
			}
		}
	}
}

func TestNamesOfOthers(t *testing.T) {
	for _, name := range []string{"a-small-0", "a-small-00-0", "a-small--1-0", "a-small-0-0-0", "b-small-0-0", "a-small-0-x", "a-small", "", "a-small-99999999999-0"} {
		if replica, host, ok := placeOf("a-small", name); ok {
			t.Errorf("%q is read as %d, %d", name, replica, host)
		}
	}
}
