package stored

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/policies"
)

// wildcard stands for every group, kind or subresource.
const wildcard = "*"

// The kinds that hold pod templates and the upstream kinds are looked at without
// further ado; an administrator may grant more, see docs/operations.md.
//
// +kubebuilder:rbac:groups=apps,resources=daemonsets;deployments;replicasets;statefulsets,verbs=list;watch
// +kubebuilder:rbac:groups=batch,resources=cronjobs;jobs,verbs=list;watch
// +kubebuilder:rbac:groups=kubeflow.org,resources=jaxjobs;mpijobs;paddlejobs;pytorchjobs;tfjobs;xgboostjobs,verbs=list;watch
// +kubebuilder:rbac:groups=ray.io,resources=rayclusters,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes;podtemplates;replicationcontrollers,verbs=list;watch

// AggregationLabel marks the ClusterRoles that grant Penstock list and watch on
// further kinds.
const AggregationLabel = v1.ManagerRoleLabel + "=true"

// A Kind is a kind whose stored objects a policy judges.
type Kind struct {
	GroupVersionKind schema.GroupVersionKind
	Resource         schema.GroupVersionResource
	Namespaced       bool
}

// An UnseenKind is a kind whose stored objects are not looked at, and why.
type UnseenKind struct {
	// Kind is its name, as Kind.group, or words for several.
	Kind   string
	Reason string
}

// Kinds lists the kinds whose stored objects a policy judges, in the
// version that it judges them in, and those that are not looked at. Wildcards
// are among the latter: to list, and to keep watching, every kind of a cluster
// would cost more than it tells. It is an error if it cannot be told which kinds
// are served.
func Kinds(spec *v1.WorkloadPolicySpec, mapper KindMapper) ([]Kind, []UnseenKind, error) {
	var found []Kind
	var unseen []UnseenKind
	add := func(kind schema.GroupKind, versions ...string) error {
		mapping, err := mapper.RESTMapping(kind, versions...)
		switch {
		case meta.IsNoMatchError(err):
			// There are no objects of a kind that is not served.
			return nil
		case err != nil:
			return fmt.Errorf("failed to find the resource of %s: %w", kind, err)
		}
		one := Kind{mapping.GroupVersionKind, mapping.Resource, mapping.Scope != meta.RESTScopeRoot}
		if policies.Exempt(mapping.Resource.GroupResource()) == "" && !slices.Contains(found, one) {
			found = append(found, one)
		}
		return nil
	}
	for _, kind := range judgedKinds(spec.Match.Resources) {
		if kind.Group == wildcard || kind.Kind == wildcard {
			unseen = append(unseen, UnseenKind{kind.String(), "only kinds that are named are looked at"})
			continue
		}
		var versions []string
		if kind.Group == v1.GroupName {
			versions = []string{v1.GroupVersion.Version}
		}
		if err := add(kind, versions...); err != nil {
			return nil, nil, err
		}
	}
	if spec.UpstreamKinds != v1.UpstreamKindsJudge {
		return found, unseen, nil
	}
	for _, kind := range UpstreamOf(spec.Match.Resources) {
		if err := add(kind.GroupKind(), kind.Version); err != nil {
			return nil, nil, err
		}
	}
	return found, unseen, nil
}

// judgedKinds lists the kinds, wildcards included, of which a policy judges the
// objects themselves and not only subresources.
func judgedKinds(matched []v1.PolicyResources) []schema.GroupKind {
	var found []schema.GroupKind
	for _, resources := range matched {
		if len(resources.Subresources) > 0 && !slices.Contains(resources.Subresources, "") {
			continue
		}
		for _, kind := range resources.Kinds {
			// Of Penstock's own kinds it is known which there are.
			if resources.Group == v1.GroupName && kind == wildcard {
				found = append(found, v1.WorkloadKinds()...)
				continue
			}
			found = append(found, schema.GroupKind{Group: resources.Group, Kind: kind})
		}
	}
	return found
}

// UpstreamOf lists the upstream kinds of matched kinds.
func UpstreamOf(matched []v1.PolicyResources) []schema.GroupVersionKind {
	var found []schema.GroupVersionKind
	for _, upstream := range conversion.UpstreamKinds() {
		own, _ := conversion.Upstream(upstream)
		if slices.ContainsFunc(matched, func(resources v1.PolicyResources) bool {
			return (resources.Group == own.Group || resources.Group == wildcard) &&
				(slices.Contains(resources.Kinds, own.Kind) || slices.Contains(resources.Kinds, wildcard))
		}) {
			found = append(found, upstream)
		}
	}
	return found
}
