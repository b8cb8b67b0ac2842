package validation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

func TestAdviseKinds(t *testing.T) {
	served := []validation.ServedKind{
		{GroupKind: schema.GroupKind{Kind: "Pod"}, Names: []string{"pods", "pod", "po"}, Subresources: []string{"ephemeralcontainers", "resize", "status"}},
		{GroupKind: schema.GroupKind{Kind: "Node"}, Names: []string{"nodes", "node", "no"}},
		{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Names: []string{"configmaps", "configmap", "cm"}, Subresources: []string{}},
		{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Names: []string{"deployments", "deployment", "deploy"}, Subresources: []string{"scale", "status"}},
		{GroupKind: schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, Names: []string{"statefulsets", "statefulset", "sts"}, Subresources: []string{"scale", "status"}},
	}
	on := func(group, kind string, subresources ...string) v1.WorkloadPolicySpec {
		return v1.WorkloadPolicySpec{Match: v1.PolicyMatch{Resources: []v1.PolicyResources{{Group: group, Kinds: []string{kind}, Subresources: subresources}}}}
	}
	const at = "spec.match.resources[0].kinds[0]: Forbidden: "
	tests := map[string]struct {
		spec v1.WorkloadPolicySpec
		// online is what is said where all kinds are known, offline where only
		// these groups are.
		online, offline []string
	}{
		"served":         {spec: on("apps", "Deployment", "", "scale")},
		"all of a group": {spec: on("apps", "*")},
		"everything":     {spec: on("*", "*", "*")},
		"in small letters": {
			spec:   on("apps", "deployment"),
			online: []string{at + "deployment.apps is not served, and names are taken as they are spelt: write Deployment"},
		},
		"in capitals": {
			spec:   on("", "POD"),
			online: []string{at + "POD of the core group is not served, and names are taken as they are spelt: write Pod"},
		},
		"by its resource": {
			spec:   on("apps", "deployments"),
			online: []string{at + "deployments.apps is not served, and names are taken as they are spelt: write Deployment"},
		},
		"by a short name": {
			spec:   on("apps", "sts"),
			online: []string{at + "sts.apps is not served, and names are taken as they are spelt: write StatefulSet"},
		},
		"misspelt": {
			spec:   on("apps", "Deploymnet"),
			online: []string{at + "Deploymnet.apps is not served, and names are taken as they are spelt: write Deployment"},
		},
		"misspelt in any group": {
			spec:   on("*", "Deploymnet"),
			online: []string{at + "Deploymnet of any group is not served, and names are taken as they are spelt: write Deployment"},
		},
		"a list of it": {
			spec:   on("apps", "DeploymentList"),
			online: []string{at + "DeploymentList.apps is not served, and names are taken as they are spelt: write Deployment"},
		},
		"without its group": {
			spec:   on("", "Deployment"),
			online: []string{at + "Deployment of the core group is not served; Deployment is in group apps: name that group, unless the kind is to be installed"},
		},
		"of a group that may come": {
			spec:    on("kubeflow.org", "PyTorchJob"),
			online:  []string{at + "PyTorchJob.kubeflow.org is not served: nothing is judged of it until it is installed"},
			offline: []string{},
		},
		"of another group's name": {
			spec:    on("apps.kruise.io", "StatefulSet"),
			online:  []string{at + "StatefulSet.apps.kruise.io is not served; StatefulSet is in group apps: name that group, unless the kind is to be installed"},
			offline: []string{},
		},
		"a misspelt subresource": {
			spec:   on("apps", "Deployment", "scal"),
			online: []string{"spec.match.resources[0].subresources[0]: Forbidden: Deployment has no subresource scal: write scale"},
		},
		"another's subresource": {
			spec:   on("", "Pod", "", "scale"),
			online: []string{"spec.match.resources[0].subresources[1]: Forbidden: Pod has no subresource scale: there are ephemeralcontainers, resize, status"},
		},
		"a subresource of what has none": {
			spec:   on("", "ConfigMap", "status"),
			online: []string{"spec.match.resources[0].subresources[0]: Forbidden: ConfigMap has no subresource status: it has none"},
		},
		"subresources that are not known": {spec: on("", "Node", "status")},
		"an inventory of what may come": {
			spec: v1.WorkloadPolicySpec{Inventory: []v1.InventoryKind{{APIVersion: "example.com/v1", Kind: "Quota"}}},
			online: []string{"spec.inventory[0].kind: Forbidden: Quota.example.com is not served: the rule is not evaluated, and the failurePolicy answers, " +
				"until it is installed: install what defines it, or take it out of the inventory and the rule"},
			offline: []string{},
		},
		"an inventory": {
			spec:   v1.WorkloadPolicySpec{Inventory: []v1.InventoryKind{{APIVersion: "v1", Kind: "node"}}},
			online: []string{"spec.inventory[0].kind: Forbidden: node of the core group is not served, and names are taken as they are spelt: write Node"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			offline := tc.offline
			if offline == nil {
				offline = tc.online
			}
			policy := &v1.WorkloadPolicy{Spec: tc.spec}
			for all, want := range map[bool][]string{true: tc.online, false: offline} {
				var got []string
				for _, line := range validation.AdviseKinds(policy, validation.ServedKinds{Kinds: served, All: all}) {
					got = append(got, line.Error())
				}
				if len(got)+len(want) > 0 && !cmp.Equal(got, want) {
					t.Errorf("all %v: %s", all, cmp.Diff(want, got))
				}
			}
		})
	}
}
