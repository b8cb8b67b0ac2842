package validation

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// clusterScoped are the kinds of Kubernetes that live in no namespace.
var clusterScoped = func() map[schema.GroupKind]bool {
	found := map[schema.GroupKind]bool{}
	for group, kinds := range map[string]string{
		"":                             "Namespace Node PersistentVolume",
		"admissionregistration.k8s.io": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
		"apiextensions.k8s.io":         "CustomResourceDefinition",
		"apiregistration.k8s.io":       "APIService",
		"certificates.k8s.io":          "CertificateSigningRequest ClusterTrustBundle",
		"flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
		"networking.k8s.io":            "IngressClass IPAddress ServiceCIDR",
		"node.k8s.io":                  "RuntimeClass",
		"rbac.authorization.k8s.io":    "ClusterRole ClusterRoleBinding",
		"resource.k8s.io":              "DeviceClass DeviceTaintRule ResourceSlice",
		"scheduling.k8s.io":            "PriorityClass",
		"storage.k8s.io":               "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
	} {
		for kind := range strings.FieldsSeq(kinds) {
			found[schema.GroupKind{Group: group, Kind: kind}] = true
		}
	}
	return found
}()

// ClusterScoped reports whether a kind is one of Kubernetes' that live in no
// namespace.
func ClusterScoped(kind schema.GroupKind) bool { return clusterScoped[kind] }

// namespaceKind is the kind whose objects are in the namespace of their own name,
// and cluster-scoped.
var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// settledGroups are the groups of which it is known that all kinds live in
// namespaces but those that are known not to.
var settledGroups = []string{v1.GroupName, "", "apps", "batch", "autoscaling", "policy"}

// Namespaced reports whether all matched kinds are known to live in namespaces.
func Namespaced(match *v1.PolicyMatch) bool {
	return allKinds(match, func(kind schema.GroupKind) bool {
		return slices.Contains(settledGroups, kind.Group) && !clusterScoped[kind]
	})
}

// unnamespaced reports whether all matched kinds are known not to. A Namespace may
// be named as either: by its name, and as what is in the namespace that it is.
func unnamespaced(match *v1.PolicyMatch) bool {
	return allKinds(match, func(kind schema.GroupKind) bool { return clusterScoped[kind] && kind != namespaceKind })
}

// allKinds reports whether something is known of all matched kinds, of which there
// are some. What a wildcard stands for is not known.
func allKinds(match *v1.PolicyMatch, known func(schema.GroupKind) bool) bool {
	for _, resources := range match.Resources {
		for _, kind := range resources.Kinds {
			if kind == anyName && resources.Group != v1.GroupName || !known(schema.GroupKind{Group: resources.Group, Kind: kind}) {
				return false
			}
		}
	}
	return len(match.Resources) > 0
}
