package ray

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/fixtures"
	"github.com/penstock-dev/penstock/webhooks/defaulting"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// TestTemplateHash: pitfall 23 and Kueue. What autoscalers, queues and defaulting
// write restarts nothing; what changes pods does, and only those.
func TestTemplateHash(t *testing.T) {
	toleration := func(r *v1.RayRole) {
		r.Template.Spec.Tolerations = append(r.Template.Spec.Tolerations, corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists})
		r.Template.Spec.SchedulingGates = append(r.Template.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: "kueue.x-k8s.io/admission"})
	}
	port := func(protocol corev1.Protocol) fixtures.ClusterMod {
		return small(func(r *v1.RayRole) {
			r.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, Protocol: protocol}}
		})
	}
	restart := func(policy corev1.RestartPolicy) fixtures.ClusterMod {
		return small(func(r *v1.RayRole) { r.Template.Spec.RestartPolicy = policy })
	}
	nothing := func(*v1.RayCluster) {}
	for name, tc := range map[string]struct {
		before, after fixtures.ClusterMod
		// head and worker say whether the pods of these differ.
		head, worker bool
	}{
		"replicas and bounds":        {nothing, small(fixtures.Replicas(7), fixtures.Between(1, 9), fixtures.WorkersToDelete("x")), false, false},
		"tolerations and gates":      {nothing, small(toleration), false, false},
		"suspended":                  {nothing, fixtures.ClusterSuspended(true), false, false},
		"the strategy itself":        {nothing, fixtures.Upgrades(v1.UpgradeRecreate), false, false},
		"a default of the schema":    {port(""), port(corev1.ProtocolTCP), false, false},
		"another protocol":           {port(""), port(corev1.ProtocolUDP), false, true},
		"the default restart policy": {nothing, restart(corev1.RestartPolicyAlways), false, false},
		"what the autoscaler needs": {fixtures.Autoscaled(v1.RayAutoscalerV2), func(c *v1.RayCluster) {
			fixtures.Autoscaled(v1.RayAutoscalerV2)(c)
			restart(corev1.RestartPolicyNever)(c)
		}, false, false},
		"empty options":               {nothing, small(func(r *v1.RayRole) { r.Ray = &v1.RayNode{StartParams: map[string]string{}} }), false, false},
		"another group":               {nothing, fixtures.RayGroup("other"), false, false},
		"an image":                    {nothing, small(fixtures.RayImage("x")), false, true},
		"the image of the head":       {nothing, fixtures.RayGroup(v1.RoleHead, fixtures.RayImage("x")), true, false},
		"a flag":                      {nothing, small(fixtures.StartParam("num-cpus", "3")), false, true},
		"the version of Ray":          {nothing, func(c *v1.RayCluster) { c.Spec.RayVersion = new("2.53.0") }, true, true},
		"the port of the head":        {nothing, fixtures.RayGroup(v1.RoleHead, fixtures.StartParam("port", "7000")), true, true},
		"the autoscaler is turned on": {nothing, fixtures.Autoscaled(v1.RayAutoscalerV1), true, false},
		"fault tolerance":             {nothing, fixtures.InRedis(), true, true},
	} {
		before, after := fixtures.RayCluster("a", tc.before), fixtures.RayCluster("a", tc.after)
		for i, want := range []bool{tc.head, tc.worker} {
			if got := templateHash(before, &before.Spec.Roles[i]) != templateHash(after, &after.Spec.Roles[i]); got != want {
				t.Errorf("%s: pods of %s differ: %v, want %v", name, before.Spec.Roles[i].Name, got, want)
			}
		}
	}
}

// TestDefaultingKeepsTheHash: a cluster that was stored before a default was
// written is not restarted when it is.
func TestDefaultingKeepsTheHash(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.input.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, input := range inputs {
		bare := readCluster(t, input)
		filled := bare.DeepCopy()
		defaulting.DefaultRayCluster(filled)
		if cmp.Equal(bare.Spec, filled.Spec) {
			t.Errorf("%s: nothing is defaulted", input)
		}
		for i := range bare.Spec.Roles {
			if templateHash(bare, &bare.Spec.Roles[i]) != templateHash(filled, &filled.Spec.Roles[i]) {
				t.Errorf("%s: defaulting changes the hash of %s", input, bare.Spec.Roles[i].Name)
			}
		}
		if faults := validation.ValidateRayCluster(nil, filled); len(faults) > 0 {
			t.Errorf("%s: %v", input, faults.ToAggregate())
		}
	}
}
