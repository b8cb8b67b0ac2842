package validation

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidatePodTemplate finds why the API server would refuse the pods of a
// template, whatever kind holds it: it would say so only once pods are made,
// where nobody listens. It is held to the API server by the integration tests,
// fault by fault, and names the field that the API server names, or one below
// it. What the API server writes as defaults may be absent.
//
// The rules are those of Kubernetes 1.37 for a new Pod with every feature that
// is on by default (pkg/apis/core/validation); where releases differ, the
// milder one. Left to the API server are Windows pods, and volumes that are
// drivers' own.
func ValidatePodTemplate(template *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	f := &findings{}
	f.podMetadata(&template.ObjectMeta, path.Child("metadata"))
	f.podSpec(&template.Spec, path.Child("spec"))
	return f.errs
}

// maxAnnotations is what the annotations of an object may hold, in bytes.
const maxAnnotations = 256 << 10

// podMetadata judges the labels and annotations, which are all that pods take
// of a template's metadata.
func (f *findings) podMetadata(meta *metav1.ObjectMeta, path *field.Path) {
	f.labels(path.Child("labels"), meta.Labels)
	size := 0
	for _, key := range slices.Sorted(maps.Keys(meta.Annotations)) {
		size += len(key) + len(meta.Annotations[key])
		if len(validation.IsQualifiedName(strings.ToLower(key))) > 0 {
			f.invalid(path.Child("annotations").Key(key), key, keyForm)
		}
	}
	if size > maxAnnotations {
		fault := field.TooLong(path.Child("annotations"), "", maxAnnotations)
		fault.Detail = fmt.Sprintf("must not be more than %d bytes together: put what is long into a ConfigMap", maxAnnotations)
		f.errs = append(f.errs, fault)
	}
	if cost, set := meta.Annotations[corev1.PodDeletionCost]; set {
		if _, err := strconv.ParseInt(cost, 10, 32); err != nil || strings.HasPrefix(cost, "+") || len(cost) > 1 && cost[0] == '0' {
			f.invalid(path.Child("annotations").Key(corev1.PodDeletionCost), cost, "must be a whole number: write it as \"100\", or leave it out")
		}
	}
}

func (f *findings) podSpec(pod *corev1.PodSpec, path *field.Path) {
	volumes := f.volumes(pod.Volumes, path.Child("volumes"))
	f.podClaims(pod.ResourceClaims, path.Child("resourceClaims"))
	f.containers(pod, volumes, path)
	f.podNumbers(pod, path)
	f.podNames(pod, path)
	f.podWords(pod, path)
	f.podHost(pod, path)
	f.aliases(pod, path)
	f.podDNS(pod, path)
	f.podSecurity(pod, path)
	f.podResources(pod, path)
	f.labels(path.Child("nodeSelector"), pod.NodeSelector)
	f.affinity(pod.Affinity, path.Child("affinity"))
	f.tolerations(pod.Tolerations, path.Child("tolerations"))
	f.spread(pod.TopologySpreadConstraints, path.Child("topologySpreadConstraints"))
	f.gates(pod, path)
	if len(pod.EphemeralContainers) > 0 {
		f.forbidden(path.Child("ephemeralContainers"), "cannot be part of a new pod: use kubectl debug on one that runs, or write a container")
	}
}

func (f *findings) podNumbers(pod *corev1.PodSpec, path *field.Path) {
	if seconds := pod.ActiveDeadlineSeconds; seconds != nil {
		f.between(path.Child("activeDeadlineSeconds"), *seconds, 1, math.MaxInt32, "give how many seconds the pod may run, or leave it out")
	}
}

func (f *findings) podNames(pod *corev1.PodSpec, path *field.Path) {
	f.label(path.Child("hostname"), pod.Hostname)
	f.label(path.Child("subdomain"), pod.Subdomain)
	f.subdomain(path.Child("serviceAccountName"), pod.ServiceAccountName)
	if pod.ServiceAccountName == "" {
		f.subdomain(path.Child("serviceAccount"), pod.DeprecatedServiceAccount)
	}
	f.subdomain(path.Child("nodeName"), pod.NodeName)
	f.subdomain(path.Child("priorityClassName"), pod.PriorityClassName)
	if class := pod.RuntimeClassName; class != nil {
		if *class == "" {
			f.invalid(path.Child("runtimeClassName"), *class, "must not be empty: name the runtime class, or leave it out")
		}
		f.subdomain(path.Child("runtimeClassName"), *class)
	}
}

func (f *findings) podWords(pod *corev1.PodSpec, path *field.Path) {
	oneOf(f, path.Child("restartPolicy"), pod.RestartPolicy, corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	oneOf(f, path.Child("dnsPolicy"), pod.DNSPolicy, corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone)
	if pod.PreemptionPolicy != nil {
		oneOf(f, path.Child("preemptionPolicy"), *pod.PreemptionPolicy, corev1.PreemptLowerPriority, corev1.PreemptNever)
	}
	if pod.OS != nil {
		if pod.OS.Name == "" {
			f.required(path.Child("os", "name"), "name the system: write linux, or leave os out")
		}
		oneOf(f, path.Child("os", "name"), pod.OS.Name, corev1.Linux, corev1.Windows)
	}
}

// gates judges what holds a pod back from nodes and from being ready.
func (f *findings) gates(pod *corev1.PodSpec, path *field.Path) {
	for i, gate := range pod.ReadinessGates {
		f.key(path.Child("readinessGates").Index(i).Child("conditionType"), string(gate.ConditionType))
	}
	seen := map[string]bool{}
	for i, gate := range pod.SchedulingGates {
		gatePath := path.Child("schedulingGates").Index(i)
		f.key(gatePath, gate.Name)
		if seen[gate.Name] {
			f.duplicate(gatePath, gate.Name, "is in the list already: remove one of the two")
		}
		seen[gate.Name] = true
	}
	if pod.NodeName != "" && len(pod.SchedulingGates) > 0 {
		f.forbidden(path.Child("nodeName"), "must not be set while there are schedulingGates: keep one of the two")
	}
}

// podHost judges what a pod shares with its node.
func (f *findings) podHost(pod *corev1.PodSpec, path *field.Path) {
	if pod.ShareProcessNamespace != nil && *pod.ShareProcessNamespace && pod.HostPID {
		f.invalid(path.Child("shareProcessNamespace"), true, "must not be set beside hostPID: keep one of the two")
	}
	if pod.HostUsers != nil && !*pod.HostUsers {
		for _, shared := range members(member{"hostPID", pod.HostPID}, member{"hostIPC", pod.HostIPC}) {
			f.forbidden(path.Child(shared), "must not be set where hostUsers is false: keep one of the two")
		}
	}
	if override := pod.HostnameOverride; override != nil {
		overridePath := path.Child("hostnameOverride")
		switch {
		case pod.SetHostnameAsFQDN != nil && *pod.SetHostnameAsFQDN:
			f.forbidden(overridePath, "must not be set beside setHostnameAsFQDN: keep one of the two")
		case pod.HostNetwork:
			f.forbidden(overridePath, "must not be set beside hostNetwork: keep one of the two")
		case *override == "" || len(*override) > 64 || len(validation.IsDNS1123Subdomain(*override)) > 0:
			f.invalid(overridePath, *override, "must be a host name: use at most 64 lower-case letters, digits, - and dots")
		}
	}
}

const (
	maxNameservers = 3
	maxSearches    = 32
	maxSearchText  = 2048
)

func (f *findings) aliases(pod *corev1.PodSpec, path *field.Path) {
	for i, alias := range pod.HostAliases {
		aliasPath := path.Child("hostAliases").Index(i)
		f.address(aliasPath.Child("ip"), alias.IP)
		for j, name := range alias.Hostnames {
			if len(validation.IsDNS1123Subdomain(name)) > 0 {
				f.invalid(aliasPath.Child("hostnames").Index(j), name, "must be the name of a host: use lower-case letters, digits, - and dots")
			}
		}
	}
}

func (f *findings) podDNS(pod *corev1.PodSpec, path *field.Path) {
	config, configPath := pod.DNSConfig, path.Child("dnsConfig")
	if pod.DNSPolicy == corev1.DNSNone && (config == nil || len(config.Nameservers) == 0) {
		f.required(configPath.Child("nameservers"), "dnsPolicy None leaves the pod without a resolver: give at least one address, or another dnsPolicy")
	}
	if config == nil {
		return
	}
	if len(config.Nameservers) > maxNameservers {
		f.invalid(configPath.Child("nameservers"), config.Nameservers, fmt.Sprintf("must be at most %d: remove some", maxNameservers))
	}
	for i, server := range config.Nameservers {
		f.address(configPath.Child("nameservers").Index(i), server)
	}
	if len(config.Searches) > maxSearches || len(strings.Join(config.Searches, " ")) > maxSearchText {
		f.invalid(configPath.Child("searches"), config.Searches, fmt.Sprintf("must be at most %d names of at most %d characters together: remove some", maxSearches, maxSearchText))
	}
	for i, search := range config.Searches {
		if search != "." && len(validation.IsDNS1123SubdomainWithUnderscore(strings.TrimSuffix(search, "."))) > 0 {
			f.invalid(configPath.Child("searches").Index(i), search, "must be a domain: write it as team.svc.cluster.local")
		}
	}
	for i, option := range config.Options {
		if option.Name == "" {
			f.required(configPath.Child("options").Index(i), "an option needs a name: write it, or remove the option")
		}
	}
}

func (f *findings) address(path *field.Path, value string) {
	if len(validation.IsValidIPForLegacyField(path, value, false, nil)) > 0 {
		f.invalid(path, value, "must be an IP address: write it as 10.0.0.10 or fd00::10")
	}
}
