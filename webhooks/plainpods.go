package webhooks

import (
	"encoding/json"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

// The pods below are like those that a cluster needs to start, as the API server
// shows them to webhooks: none asks for devices or claims.

// pluginNamespace is one of those that clusters run their network or storage in,
// beside kube-system, which is never behind Penstock.
const pluginNamespace = "cni-system"

// A plainPod is a pod, and how to tell it to people.
type plainPod struct {
	text string
	pod  *corev1.Pod
	// creator is who makes it.
	creator string
}

// plainPods are pods with nothing by which anybody could tell that the cluster
// needs them, in some shapes.
func plainPods() []plainPod {
	asks := func(c *corev1.Container) {
		amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
		c.Resources = corev1.ResourceRequirements{Requests: amounts, Limits: amounts}
	}
	bare, limited, begun, both := newPlainPod(), newPlainPod(), newPlainPod(), newPlainPod()
	asks(&limited.Spec.Containers[0])
	begun.Spec.InitContainers = []corev1.Container{newPlainContainer("install")}
	both.Spec.InitContainers = []corev1.Container{newPlainContainer("install")}
	asks(&both.Spec.Containers[0])
	asks(&both.Spec.InitContainers[0])
	return []plainPod{
		{text: "one container", pod: bare, creator: "daemon-set-controller"},
		{text: "one container, and limits of cpu and memory", pod: limited, creator: "daemon-set-controller"},
		{text: "an init container", pod: begun, creator: "daemon-set-controller"},
		{text: "an init container, and limits of cpu and memory", pod: both, creator: "daemon-set-controller"},
	}
}

// markedPods are a plain pod with what the pods of a cluster's start have and
// others rarely do: as one of the network or storage on each node, and one of DNS.
func (p plainPod) markedPods(namespace string) []plainPod {
	node, cluster := p.pod.DeepCopy(), p.pod.DeepCopy()
	for _, pod := range []*corev1.Pod{node, cluster} {
		pod.Namespace = namespace
		pod.Labels = map[string]string{"k8s-app": "plugin", "app": "plugin", "app.kubernetes.io/name": "plugin"}
		pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = "plugin", "plugin"
		pod.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "linux"}
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		pod.Spec.PriorityClassName, pod.Spec.Priority = "system-node-critical", new(int32(2000001000))
	}
	node.Spec.HostNetwork = true
	node.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	cluster.Spec.PriorityClassName, cluster.Spec.Priority = "system-cluster-critical", new(int32(2000000000))
	cluster.OwnerReferences[0].APIVersion, cluster.OwnerReferences[0].Kind = "apps/v1", "ReplicaSet"
	return []plainPod{
		{text: "hostNetwork, privileged, priorityClassName system-node-critical, label k8s-app", pod: node, creator: "daemon-set-controller"},
		{text: "priorityClassName system-cluster-critical, label k8s-app", pod: cluster, creator: "replicaset-controller"},
	}
}

func newPlainPod() *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "plugin-x7k2p", GenerateName: "plugin-", Namespace: pluginNamespace,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "plugin", UID: "1", Controller: new(true), BlockOwnerDeletion: new(true)}},
		},
		Spec: corev1.PodSpec{
			Containers:    []corev1.Container{newPlainContainer("plugin")},
			RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: corev1.DefaultSchedulerName,
			ServiceAccountName: "default", DeprecatedServiceAccount: "default", EnableServiceLinks: new(true),
			TerminationGracePeriodSeconds: new(int64(30)), SecurityContext: &corev1.PodSecurityContext{},
			Priority: new(int32(0)), PreemptionPolicy: new(corev1.PreemptLowerPriority),
			Volumes: []corev1.Volume{{Name: "kube-api-access-x7k2p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				DefaultMode: new(int32(0o644)),
				Sources:     []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3607))}}},
			}}}},
			Tolerations: []corev1.Toleration{
				{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort},
	}
}

func newPlainContainer(name string) corev1.Container {
	return corev1.Container{
		Name: name, Image: "registry.example/plugin:1", ImagePullPolicy: corev1.PullIfNotPresent,
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		VolumeMounts: []corev1.VolumeMount{{Name: "kube-api-access-x7k2p", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
	}
}

// A podStep is what happens to every pod from its creation until it is ready, of
// which the API server asks.
type podStep struct {
	operation   v1.PolicyOperation
	subresource string
	// fix says how to keep a policy from it, empty for the pods themselves.
	fix     string
	request func(p plainPod) *admissionv1.AdmissionRequest
}

var podSteps = []podStep{
	{operation: v1.OperationCreate, request: func(p plainPod) *admissionv1.AdmissionRequest {
		return p.request("Pod", p.pod, nil, serviceAccount(p.creator))
	}},
	{operation: v1.OperationCreate, subresource: "binding", fix: "leave out the subresource binding", request: func(p plainPod) *admissionv1.AdmissionRequest {
		binding := &corev1.Binding{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
			ObjectMeta: metav1.ObjectMeta{Name: p.pod.Name, Namespace: p.pod.Namespace},
			Target:     corev1.ObjectReference{Kind: "Node", Name: "node"},
		}
		return p.request("Binding", binding, nil, authenticationv1.UserInfo{Username: "system:kube-scheduler", Groups: []string{"system:authenticated"}})
	}},
	{operation: v1.OperationUpdate, subresource: "status", fix: "leave out the subresource status", request: func(p plainPod) *admissionv1.AdmissionRequest {
		running := p.pod.DeepCopy()
		running.Status.Phase = corev1.PodRunning
		return p.request("Pod", running, p.pod, authenticationv1.UserInfo{Username: "system:node:node", Groups: []string{"system:nodes", "system:authenticated"}})
	}},
}

// asked is the request for a step of a pod.
func (s podStep) asked(p plainPod) *admissionv1.AdmissionRequest {
	request := s.request(p)
	request.Operation, request.SubResource = admissionv1.Operation(s.operation), s.subresource
	return request
}

// stepsOf lists the steps that a policy is asked about, whatever its conditions
// and selectors.
func stepsOf(match *v1.PolicyMatch) []podStep {
	var found []podStep
	for _, step := range podSteps {
		if slices.Contains(policies.OperationsOf(match), step.operation) && slices.ContainsFunc(match.Resources, step.isOf) {
			found = append(found, step)
		}
	}
	return found
}

// isOf reports whether the resources that a policy names have the step.
func (s podStep) isOf(resources v1.PolicyResources) bool {
	pods := (resources.Group == "" || resources.Group == "*") && (slices.Contains(resources.Kinds, "Pod") || slices.Contains(resources.Kinds, "*"))
	switch {
	case !pods:
		return false
	case s.subresource == "":
		return len(resources.Subresources) == 0 || slices.Contains(resources.Subresources, "")
	default:
		return slices.Contains(resources.Subresources, s.subresource) || slices.Contains(resources.Subresources, "*")
	}
}

func serviceAccount(name string) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{
		Username: "system:serviceaccount:" + metav1.NamespaceSystem + ":" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + metav1.NamespaceSystem, "system:authenticated"},
	}
}

func (p plainPod) request(kind string, object, old runtime.Object, user authenticationv1.UserInfo) *admissionv1.AdmissionRequest {
	request := &admissionv1.AdmissionRequest{
		Name: p.pod.Name, Namespace: p.pod.Namespace, UserInfo: user,
		Kind:     metav1.GroupVersionKind{Version: "v1", Kind: kind},
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
	}
	// API types encode always.
	request.Object.Raw, _ = json.Marshal(object)
	if old != nil {
		request.OldObject.Raw, _ = json.Marshal(old)
	}
	return request
}
