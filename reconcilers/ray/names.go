package ray

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// Names and labels of children.
//
// Names are deterministic, so that nothing can be made twice. A worker's is that
// of its cluster, its group, its replica and its host within the replica. Names
// of different groups and clusters must never be the same: a group whose own
// name has a dash, which could as well be part of the cluster's, or that is too
// long has a hash of both names behind two dashes, which no other name has there.

// Keys of KubeRay, which dashboards, policies and Ray's autoscaler look for.
const (
	rayClusterLabel      = "ray.io/cluster"
	rayNodeTypeLabel     = "ray.io/node-type"
	rayGroupLabel        = "ray.io/group"
	rayNodeLabel         = "ray.io/is-ray-node"
	rayIdentifierLabel   = "ray.io/identifier"
	rayServeLabel        = "ray.io/serve"
	rayReplicaIndexLabel = "ray.io/worker-group-replica-index"
	rayReplicaNameLabel  = "ray.io/worker-group-replica-name"
	rayHostIndexLabel    = "ray.io/replica-host-index"

	headNodeType    = "head"
	workerNodeType  = "worker"
	cleanupNodeType = "redis-cleanup"
	// headGroup is the group of the head, in labels.
	headGroup = "headgroup"
)

const (
	// maxName is the longest name that is a label value and a host name, too.
	maxName = 63
	// suffixLength is what the numbers of the last pod there can be take up:
	// -100000-10000.
	suffixLength = 13
	hashLength   = 8
)

func headName(cluster *v1.RayCluster) string { return cluster.Name + "-head" }

// groupBase is what the names of a group's pods begin with.
func groupBase(cluster *v1.RayCluster, group v1.RoleName) string {
	name := strings.ToLower(string(group))
	base := cluster.Name + "-" + name
	if !strings.Contains(name, "-") && len(base)+suffixLength <= maxName {
		return base
	}
	return hashed(base, maxName-suffixLength, cluster.Name, name)
}

// hashed shortens a name and tells it from others by a hash of what it is made
// of.
func hashed(name string, limit int, of ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(of, "/")))
	kept := name[:min(len(name), limit-hashLength-2)]
	return strings.TrimRight(kept, "-") + "--" + hex.EncodeToString(sum[:])[:hashLength]
}

// fitted returns the name of a cluster with a suffix, shortened if it must be.
func fitted(cluster *v1.RayCluster, suffix string) string {
	if name := cluster.Name + suffix; len(name) <= maxName {
		return name
	}
	return hashed(cluster.Name+suffix, maxName, cluster.Name, suffix)
}

func workerName(cluster *v1.RayCluster, group v1.RoleName, replica, host int32) string {
	return groupBase(cluster, group) + "-" + itoa(replica) + "-" + itoa(host)
}

// placeOf returns the replica and the host that a pod's name holds if it begins
// with a base.
func placeOf(base, name string) (replica, host int32, ok bool) {
	suffix, ok := strings.CutPrefix(name, base+"-")
	if !ok {
		return 0, 0, false
	}
	first, second, ok := strings.Cut(suffix, "-")
	if !ok {
		return 0, 0, false
	}
	replica, ok = number(first)
	if !ok {
		return 0, 0, false
	}
	host, ok = number(second)
	return replica, host, ok
}

func number(text string) (int32, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err == nil && n >= 0 && itoa(int32(n)) == text
}

// headServiceName is chosen by the cluster, or follows from its name.
func headServiceName(cluster *v1.RayCluster) string {
	if head := cluster.Spec.Head; head != nil && head.Service != nil && head.Service.Metadata != nil && head.Service.Metadata.Name != nil {
		return *head.Service.Metadata.Name
	}
	return cluster.Name + "-head-svc"
}

func headlessName(cluster *v1.RayCluster) string { return cluster.Name + "-headless" }

func serveServiceName(cluster *v1.RayCluster) string { return cluster.Name + "-serve-svc" }

// headAddress is the name by which workers find the head. It holds whatever the
// domain of the Kubernetes cluster is.
func headAddress(cluster *v1.RayCluster) string {
	return headServiceName(cluster) + "." + cluster.Namespace + ".svc"
}

// clusterLabels are on every child of a cluster.
func clusterLabels(cluster *v1.RayCluster) map[string]string {
	return map[string]string{
		v1.ManagedByLabel:   v1.ManagedByValue,
		v1.ClusterNameLabel: cluster.Name,
		rayClusterLabel:     cluster.Name,
	}
}

// roleLabels are on every pod of a role and select them.
func roleLabels(cluster *v1.RayCluster, role v1.RoleName) map[string]string {
	labels := clusterLabels(cluster)
	labels[v1.RoleLabel] = strings.ToLower(string(role))
	return labels
}

// podLabels are on a pod of a role. Labels that the author gave win over those
// of KubeRay that only inform.
func podLabels(cluster *v1.RayCluster, role *v1.RayRole) map[string]string {
	nodeType, _ := rayPlace(role)
	labels := map[string]string{
		rayNodeLabel:             "yes",
		rayIdentifierLabel:       cluster.Name + "-" + nodeType,
		"app.kubernetes.io/name": "kuberay",
	}
	if servesApplications(cluster) {
		labels[rayServeLabel] = "true"
	}
	labels = pods.WithLabels(labels, role.Template.Labels)
	if role.Ray != nil {
		labels = pods.WithLabels(labels, role.Ray.Labels)
	}
	labels = pods.WithLabels(labels, placeLabels(cluster, role))
	labels[v1.TemplateHashLabel] = templateHash(cluster, role)
	return labels
}

// placeLabels tell where in the cluster a pod of a role belongs.
func placeLabels(cluster *v1.RayCluster, role *v1.RayRole) map[string]string {
	labels := roleLabels(cluster, role.Name)
	labels[rayNodeTypeLabel], labels[rayGroupLabel] = rayPlace(role)
	return labels
}

// rayPlace is what Ray calls a role's type of node, and its group.
func rayPlace(role *v1.RayRole) (nodeType, group string) {
	if role.Name == v1.RoleHead {
		return headNodeType, headGroup
	}
	return workerNodeType, string(role.Name)
}

// hostLabels tell which host of which replica a worker is.
func hostLabels(cluster *v1.RayCluster, g *group, replica, host int32) map[string]string {
	labels := map[string]string{
		v1.ReplicaLabel: itoa(replica), v1.HostLabel: itoa(host), rayReplicaIndexLabel: itoa(replica),
	}
	if g.hosts > 1 {
		labels[rayReplicaNameLabel] = groupBase(cluster, g.role.Name) + "-" + itoa(replica)
		labels[rayHostIndexLabel] = itoa(host)
	}
	return labels
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }
