package ray

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

const (
	autoscalerContainer       = "autoscaler"
	autoscalerV2Variable      = "RAY_enable_autoscaler_v2"
	autoscalerCommandVariable = "KUBERAY_GEN_AUTOSCALER_START_CMD"
	autoscalerCommand         = "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME) --cluster-namespace $(RAY_CLUSTER_NAMESPACE)"

	// rayLogs is the volume of Ray's session directory, which the head and the
	// autoscaler share.
	rayLogs, sessionDirectory = "ray-logs", "/tmp/ray"

	// servedVersion leads Ray's autoscaler to the clusters of penstock.dev. It
	// asks for /apis/ray.io/ and this, in the form that v1alpha1 has.
	servedVersion = "../" + v1.GroupName + "/v1alpha1"
)

// addAutoscaler adds Ray's autoscaler to the pod of the head.
func addAutoscaler(cluster *v1.RayCluster, pod *corev1.Pod) {
	if !autoscales(cluster) {
		return
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = accountName(cluster)
	}
	head := &pod.Spec.Containers[0]
	logs := mountAt(head, sessionDirectory)
	if logs == nil {
		pods.Mount(pod, head, sessionDirectory, corev1.Volume{Name: rayLogs, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		logs = mountAt(head, sessionDirectory)
	}
	o := cluster.Spec.Autoscaler
	container := corev1.Container{
		Name:            autoscalerContainer,
		Image:           ptr.Deref(o.Image, head.Image),
		ImagePullPolicy: o.ImagePullPolicy,
		Command:         shell(),
		Args:            []string{autoscalerCommand},
		Env:             o.Env,
		EnvFrom:         o.EnvFrom,
		SecurityContext: o.SecurityContext,
		VolumeMounts:    append([]corev1.VolumeMount{*logs}, o.VolumeMounts...),
		Resources:       autoscalerResources(o),
	}
	if len(o.Command) > 0 {
		container.Command = o.Command
	}
	if len(o.Args) > 0 {
		container.Args = o.Args
	}
	container = *container.DeepCopy()
	autoscalerEnvironment(cluster).into(&container)
	authenticate(cluster, pod, &container)
	pod.Spec.Containers = append(pod.Spec.Containers, container)
}

func autoscalerEnvironment(cluster *v1.RayCluster) environment {
	e := environment{}
	e.always.SetFrom("RAY_CLUSTER_NAME", "metadata.labels['"+rayClusterLabel+"']")
	e.always.SetFrom("RAY_CLUSTER_NAMESPACE", "metadata.namespace")
	e.always.SetFrom("RAY_HEAD_POD_NAME", "metadata.name")
	e.always.Set("KUBERAY_CRD_VER", servedVersion)
	e.always.Set(autoscalerCommandVariable, autoscalerCommand)
	if cluster.Spec.Autoscaler.Version == v1.RayAutoscalerV2 {
		e.unlessSet.Set(autoscalerV2Variable, "1")
	}
	return e
}

func autoscalerResources(o *v1.RayAutoscaler) corev1.ResourceRequirements {
	if o.Resources != nil {
		return *o.Resources
	}
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("512Mi"),
	}
	return corev1.ResourceRequirements{Limits: amounts, Requests: amounts.DeepCopy()}
}

// accountName is the service account of the autoscaler, and of its rights.
func accountName(cluster *v1.RayCluster) string { return cluster.Name + "-autoscaler" }

// planAccount gives the head's pod the rights that the autoscaler needs: to see
// the pods, and to change this cluster. They go when it is turned off.
func (p *planner) planAccount() {
	if !autoscales(p.cluster) {
		p.removeAccount()
		return
	}
	name, ns, labels := accountName(p.cluster), p.cluster.Namespace, clusterLabels(p.cluster)
	account := headOf(p.cluster).Template.Spec.ServiceAccountName
	if account == "" {
		account = name
		p.result.Apply = append(p.result.Apply, corev1ac.ServiceAccount(name, ns).WithLabels(labels))
	}
	p.result.Apply = append(p.result.Apply,
		rbacv1ac.Role(name, ns).WithLabels(labels).WithRules(
			rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("pods").WithVerbs("get", "list", "watch", "patch"),
			rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("pods/resize").WithVerbs("patch"),
			rbacv1ac.PolicyRule().WithAPIGroups(v1.GroupName).WithResources("rayclusters").WithVerbs("get", "patch").WithResourceNames(p.cluster.Name),
		),
		rbacv1ac.RoleBinding(name, ns).WithLabels(labels).
			WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(name)).
			WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(account).WithNamespace(ns)),
	)
}

func (p *planner) removeAccount() {
	for _, child := range p.observed.Children {
		switch child.(type) {
		case *corev1.ServiceAccount, *rbacv1.Role, *rbacv1.RoleBinding:
			p.remove(child, "there is no autoscaler")
		}
	}
}
