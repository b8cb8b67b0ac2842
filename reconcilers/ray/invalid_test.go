package ray

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// TestPlanInvalid: of a cluster whose spec is not valid nothing is made, and its
// status stays true.
func TestPlanInvalid(t *testing.T) {
	gone := func(s *scene) { clear(s.pods) }
	tests := map[string]struct {
		mods    []fixtures.ClusterMod
		happens func(*scene)
		want    []string
		deletes int
	}{
		"all runs": {want: []string{"Running", "4/4", "Ready True AllPodsReady all pods run and are ready", "HeadReady True"}},
		"all pods are gone": {
			happens: gone,
			want:    []string{"Pending", "0/4", "Ready False HeadNotFound the head has no pod, and none is made while the spec is not valid", "HeadReady False"},
		},
		"a worker is gone": {
			happens: func(s *scene) { delete(s.pods, "a-gpu-0-0") },
			want:    []string{"Pending", "3/4", "Ready False WorkersNotReady 0 of 1 replicas of group gpu are ready, and none is made while the spec is not valid", "HeadReady True"},
		},
		"it is suspended": {
			happens: func(s *scene) { fixtures.ClusterSuspended(true)(s.cluster) },
			want:    []string{"Scaling", "0/4", "Ready False ClusterSuspended the cluster is suspended", "HeadReady False"}, deletes: 4,
		},
		"it is suspended, and its pods are gone": {
			happens: func(s *scene) { gone(s); fixtures.ClusterSuspended(true)(s.cluster) },
			want:    []string{"Suspended", "0/4", "Ready False ClusterSuspended the cluster is suspended", "HeadReady False"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(append(tc.mods, fixtures.RayGroup("gpu", fixtures.Replicas(1)))...)
			s.cluster.Generation++
			if tc.happens != nil {
				tc.happens(s)
			}
			result := PlanInvalid(s.cluster, s.observed(), s.now)
			ready := meta.FindStatusCondition(result.Status.Conditions, v1.RayClusterReadyCondition)
			head := meta.FindStatusCondition(result.Status.Conditions, v1.RayClusterHeadReadyCondition)
			got := []string{
				string(result.Status.Phase), result.Status.RolesReady,
				fmt.Sprintf("Ready %s %s %s", ready.Status, ready.Reason, ready.Message), fmt.Sprintf("HeadReady %s", head.Status),
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(result.Delete) != tc.deletes || len(result.Create)+len(result.Apply)+len(result.Generate) > 0 {
				t.Errorf("deletes %d, makes %v %v", len(result.Delete), result.Create, result.Apply)
			}
			for _, c := range []int64{ready.ObservedGeneration, head.ObservedGeneration, result.Status.ObservedGeneration} {
				if c != s.cluster.Generation {
					t.Errorf("observed generation %d, want %d", c, s.cluster.Generation)
				}
			}
		})
	}
}

// TestPlanInvalidOfAnything: whatever a spec lacks, its status can be told.
func TestPlanInvalidOfAnything(t *testing.T) {
	faults := map[string]func(*v1.RayCluster){
		"nothing at all":  func(c *v1.RayCluster) { c.Spec = v1.RayClusterSpec{} },
		"no head":         func(c *v1.RayCluster) { c.Spec.Roles = c.Spec.Roles[1:] },
		"two heads":       func(c *v1.RayCluster) { c.Spec.Roles[0].Replicas = new(int32(2)) },
		"no containers":   func(c *v1.RayCluster) { c.Spec.Roles[0].Template.Spec.Containers = nil },
		"a group twice":   func(c *v1.RayCluster) { c.Spec.Roles = append(c.Spec.Roles, c.Spec.Roles[1]) },
		"a group without": func(c *v1.RayCluster) { c.Spec.Roles[1].Name = "" },
		"fewer than nobody": func(c *v1.RayCluster) {
			c.Spec.Roles[1].Replicas, c.Spec.Roles[1].Hosts = new(int32(-1)), new(int32(-1))
		},
		"crossed bounds":     func(c *v1.RayCluster) { fixtures.RayGroup("gpu", fixtures.Between(5, 2))(c) },
		"an unknown upgrade": func(c *v1.RayCluster) { c.Spec.UpgradeStrategy = &v1.UpgradeStrategy{Type: "Blue"} },
		"Redis nowhere":      func(c *v1.RayCluster) { c.Spec.GCSFaultTolerance = &v1.GCSFaultTolerance{} },
		"a gang of nobody":   func(c *v1.RayCluster) { c.Spec.Gang = &v1.Gang{MinAvailable: new(int32(9))} },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			s := running(fixtures.RayGroup("gpu", fixtures.Replicas(1)))
			fault(s.cluster)
			result := PlanInvalid(s.cluster, s.observed(), s.now)
			if result.Status.Phase == "" || len(result.Delete)+len(result.Create)+len(result.Apply) > 0 {
				t.Errorf("phase %q, deletes %v, makes %v %v", result.Status.Phase, result.Delete, result.Create, result.Apply)
			}
		})
	}
}

func (s *scene) observed() plan.Observed {
	observed := plan.Observed{}
	for _, name := range s.names() {
		observed.Children = append(observed.Children, s.pods[name])
	}
	return observed
}
