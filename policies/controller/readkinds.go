package controller

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/policies/stored"
)

// A readKind is a kind whose objects a policy sees.
type readKind struct {
	// kind may hold wildcards.
	kind schema.GroupKind
	// field is where the policy names it.
	field *field.Path
}

// readKinds lists the kinds whose objects a policy sees, each once: those that it
// matches, the upstream kinds of these, and its inventory.
func readKinds(spec *v1.WorkloadPolicySpec) []readKind {
	var found []readKind
	known := map[schema.GroupKind]bool{}
	add := func(kind schema.GroupKind, path *field.Path) {
		if !known[kind] {
			known[kind] = true
			found = append(found, readKind{kind, path})
		}
	}
	path := field.NewPath("spec")
	for i, resources := range spec.Match.Resources {
		for j, kind := range resources.Kinds {
			add(schema.GroupKind{Group: resources.Group, Kind: kind}, path.Child("match", "resources").Index(i).Child("kinds").Index(j))
		}
	}
	if spec.UpstreamKinds == v1.UpstreamKindsJudge {
		for _, kind := range stored.UpstreamOf(spec.Match.Resources) {
			add(kind.GroupKind(), path.Child("upstreamKinds"))
		}
	}
	for i, kind := range spec.Inventory {
		// An apiVersion that does not parse is refused for that.
		if version, err := schema.ParseGroupVersion(kind.APIVersion); err == nil {
			add(version.WithKind(kind.Kind).GroupKind(), path.Child("inventory").Index(i))
		}
	}
	return found
}

// resourceOf gives the resource that must be listed to see all objects of a
// kind. For a kind that is not served it is every resource of its group: which
// one it will be is not known, and the policy would see its objects as soon as
// it is. served is false then.
func resourceOf(kind schema.GroupKind, mapper stored.KindMapper) (resource schema.GroupResource, served bool, err error) {
	if kind.Group == wildcard {
		return schema.GroupResource{Group: wildcard, Resource: wildcard}, true, nil
	}
	if kind.Kind == wildcard {
		return schema.GroupResource{Group: kind.Group, Resource: wildcard}, true, nil
	}
	mapping, err := mapper.RESTMapping(kind)
	switch {
	case meta.IsNoMatchError(err) && isUpstream(kind):
		// Theirs are known by name.
		resource, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
		return resource.GroupResource(), true, nil
	case meta.IsNoMatchError(err):
		return schema.GroupResource{Group: kind.Group, Resource: wildcard}, false, nil
	case err != nil:
		return schema.GroupResource{}, false, fmt.Errorf("failed to find the resource of %s: %w", kind, err)
	default:
		return mapping.Resource.GroupResource(), true, nil
	}
}

func isUpstream(kind schema.GroupKind) bool {
	return slices.ContainsFunc(conversion.UpstreamKinds(), func(upstream schema.GroupVersionKind) bool { return upstream.GroupKind() == kind })
}

// readsMore reports whether a policy may see, or say, more of the cluster's
// objects than it did: whether anything changed but what it does about what it
// found, and whom it lets pass. So whoever is on call can relax a policy
// without being allowed to read all that it reads.
func readsMore(old, policy *v1.WorkloadPolicySpec) bool {
	return !equality.Semantic.DeepEqual(reading(old), reading(policy))
}

// reading is what of a spec decides what a policy sees and says.
func reading(spec *v1.WorkloadPolicySpec) *v1.WorkloadPolicySpec {
	kept := &v1.WorkloadPolicySpec{
		Match: spec.Match, MatchConditions: spec.MatchConditions, UpstreamKinds: spec.UpstreamKinds,
		Parameters: spec.Parameters, Inventory: spec.Inventory, Rego: spec.Rego,
	}
	if kept.UpstreamKinds == v1.UpstreamKindsIgnore {
		kept.UpstreamKinds = ""
	}
	for _, override := range spec.Overrides {
		if override.Parameters != nil || len(override.Unset) > 0 {
			kept.Overrides = append(kept.Overrides, v1.PolicyOverride{NamespaceSelector: override.NamespaceSelector, Unset: override.Unset, Parameters: override.Parameters})
		}
	}
	return kept
}
