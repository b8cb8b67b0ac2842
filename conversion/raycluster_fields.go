package conversion

import (
	"slices"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/api/v1alpha1"
)

// rayClusterV1alpha1 converts between v1 and the shape of KubeRay's RayCluster.
var rayClusterV1alpha1 = newSpoke("v1alpha1", RayClusterSpecToHub, RayClusterSpecFromHub, emptyRayHub, emptyRaySpoke, fieldTable{
	pairs: fieldPairs{
		{"rayVersion", "rayVersion"},
		{"runPolicy/suspend", "suspend"},
		{"runPolicy/managedBy", "managedBy"},
		{"runPolicy", "managedBy"},
		{"gang", ""},
		{"head/serviceType", "headGroupSpec/serviceType"},
		{"head/service", "headGroupSpec/headService"},
		{"head/serviceAnnotations", "headServiceAnnotations"},
		{"head/ingress/mode", "headGroupSpec/enableIngress"},
		{"head/ingress", "headGroupSpec/ingressOptions"},
		{"autoscaler/mode", "enableInTreeAutoscaling"},
		{"autoscaler", "autoscalerOptions"},
		{"upgradeStrategy", "upgradeStrategy"},
		{"gcsFaultTolerance", "gcsFaultToleranceOptions"},
		{"auth/tokens", "authOptions/enableK8sTokenAuth"},
		{"auth", "authOptions"},
	},
	roles: rayGroups{},
})

// emptyRayHub and emptyRaySpoke leave the room of the lists that templates are
// in: they are most of a spec's memory.
func emptyRayHub(spec *v1.RayClusterSpec) {
	clear(spec.Roles)
	*spec = v1.RayClusterSpec{Roles: spec.Roles[:0]}
}

func emptyRaySpoke(spec *v1alpha1.RayClusterSpec) {
	clear(spec.WorkerGroupSpecs)
	*spec = v1alpha1.RayClusterSpec{WorkerGroupSpecs: spec.WorkerGroupSpecs[:0]}
}

// Where KubeRay keeps the roles.
const (
	headGroup    = "headGroupSpec"
	workerGroups = "workerGroupSpecs"
)

// rayNodePairs are the fields that the head and groups of workers have.
var rayNodePairs = fieldPairs{
	{"template", "template"},
	{"ray/startParams", "rayStartParams"},
	{"ray/resources", "resources"},
	{"ray/labels", "labels"},
	{"ray", "rayStartParams"},
	{"restartPolicy", ""},
	{"topology", ""},
}

// rayHeadPairs are the fields of the role that is the head: it has one pod.
var rayHeadPairs = append(fieldPairs{
	{"replicas", ""},
	{"scaling", ""},
	{"hosts", ""},
	{"suspend", ""},
}, rayNodePairs...)

// rayGroupPairs are the fields of the roles that are groups of workers.
var rayGroupPairs = append(fieldPairs{
	{"name", "groupName"},
	{"replicas", "replicas"},
	{"scaling/minReplicas", "minReplicas"},
	{"scaling/maxReplicas", "maxReplicas"},
	{"scaling/workersToDelete", "scaleStrategy/workersToDelete"},
	{"scaling/idleTimeoutSeconds", "idleTimeoutSeconds"},
	{"scaling/priority", "priority"},
	{"scaling", "minReplicas"},
	{"hosts", "numOfHosts"},
	{"suspend", "suspend"},
}, rayNodePairs...)

// rayGroups finds the roles of a cluster in the head and the groups of workers.
type rayGroups struct{}

func (rayGroups) lookUp(p pointer, _ tree, up bool) (pointer, bool) {
	switch {
	case up && p[0] == headGroup && len(p) > 1:
		// The rest of a head group is in other blocks of v1.
		field, known := rayNodePairs.lookUp(p[1:], up)
		return append(pointer{"roles", string(v1.RoleHead)}, field...), known
	case up && p[0] == workerGroups && len(p) > 2:
		return roleMember(pointer{"roles", p[1]}, rayGroupPairs, p[2:], up), true
	case up || p[0] != "roles":
		return nil, false
	case len(p) == 1:
		return pointer{workerGroups}, true
	case p[1] != string(v1.RoleHead):
		return roleMember(pointer{workerGroups, p[1]}, rayGroupPairs, p[2:], up), true
	case len(p) == 2 || p[2] == "name":
		return pointer{headGroup}, true
	default:
		return roleMember(pointer{headGroup}, rayHeadPairs, p[2:], up), true
	}
}

// roleMember gives where a field of a role is in the other version, nil where
// that cannot say it.
func roleMember(role pointer, pairs fieldPairs, field pointer, up bool) pointer {
	if to, known := pairs.lookUp(field, up); known {
		if to == nil {
			return nil
		}
		field = to
	}
	return append(slices.Clip(role), field...)
}

// position leaves the head out, which is not in the list.
func (rayGroups) position(role int, roles []any) int {
	isHead := func(item any) bool {
		name, _ := roleName("roles", item)
		return name == string(v1.RoleHead)
	}
	if slices.ContainsFunc(roles[:role], isHead) {
		return role - 1
	}
	return role
}
