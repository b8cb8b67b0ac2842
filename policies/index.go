package policies

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// wildcard stands for every group, kind or subresource. As a subresource it does
// not include the object itself, as in the API server's own rules.
const wildcard = "*"

// indexKey is what policies are found by. group, kind and subresource may be
// wildcards.
type indexKey struct {
	group       string
	kind        string
	operation   v1.PolicyOperation
	subresource string
}

// operations are all that a policy may be asked about.
var operations = []v1.PolicyOperation{v1.OperationCreate, v1.OperationUpdate, v1.OperationDelete, v1.OperationConnect}

// OperationsOf lists the operations that a policy is asked about.
func OperationsOf(match *v1.PolicyMatch) []v1.PolicyOperation {
	if len(match.Operations) > 0 {
		return match.Operations
	}
	return []v1.PolicyOperation{v1.OperationCreate, v1.OperationUpdate}
}

// indexKeys lists the keys that a match stands for.
func indexKeys(match v1.PolicyMatch, path *field.Path) ([]indexKey, field.ErrorList) {
	var faults field.ErrorList
	asked := OperationsOf(&match)
	for i, operation := range asked {
		if !slices.Contains(operations, operation) {
			faults = append(faults, field.NotSupported(path.Child("operations").Index(i), operation, operations))
		}
	}
	if len(match.Resources) == 0 {
		faults = append(faults, field.Required(path.Child("resources"), "name the kinds that the policy judges"))
	}
	var keys []indexKey
	for i, resources := range match.Resources {
		if len(resources.Kinds) == 0 {
			faults = append(faults, field.Required(path.Child("resources").Index(i).Child("kinds"), "name at least one kind, or * for all"))
		}
		subresources := resources.Subresources
		if len(subresources) == 0 {
			subresources = []string{""}
		}
		for _, kind := range resources.Kinds {
			for _, subresource := range subresources {
				for _, operation := range asked {
					keys = append(keys, indexKey{resources.Group, kind, operation, subresource})
				}
			}
		}
	}
	return keys, faults
}

// index finds the policies that a request may concern.
type index struct {
	policies map[indexKey][]*Policy
	// wildcards tells that some key holds one; without them a request costs
	// one look-up.
	wildcards bool
}

func newIndex(policies []*Policy) index {
	found := index{policies: map[indexKey][]*Policy{}}
	for _, policy := range policies {
		for _, key := range policy.matcher.keys {
			if entry := found.policies[key]; len(entry) > 0 && entry[len(entry)-1] == policy {
				continue // the policy names the kind twice
			}
			found.policies[key] = append(found.policies[key], policy)
			if key.group == wildcard || key.kind == wildcard || key.subresource == wildcard {
				found.wildcards = true
			}
		}
	}
	return found
}

// updated returns the policies that judge updates of objects of a kind and are
// not, or may not be, asked about creations.
func (x *index) updated(kind schema.GroupKind) []*Policy {
	var found []*Policy
	creating := x.lookup(indexKey{kind.Group, kind.Kind, v1.OperationCreate, ""})
	for _, policy := range x.lookup(indexKey{kind.Group, kind.Kind, v1.OperationUpdate, ""}) {
		if policy.entry.Conditional() || !slices.Contains(creating, policy) {
			found = append(found, policy)
		}
	}
	return found
}

// lookup returns the policies of a request's key, in the order of their names.
func (x *index) lookup(key indexKey) []*Policy {
	exact := x.policies[key]
	if !x.wildcards {
		return exact
	}
	found := slices.Clone(exact)
	subresources := []string{key.subresource}
	if key.subresource != "" {
		subresources = append(subresources, wildcard)
	}
	for _, group := range []string{key.group, wildcard} {
		for _, kind := range []string{key.kind, wildcard} {
			for _, subresource := range subresources {
				found = append(found, x.policies[indexKey{group, kind, key.operation, subresource}]...)
			}
		}
	}
	slices.SortFunc(found, func(a, b *Policy) int { return cmp.Compare(a.name, b.name) })
	return slices.Compact(found)
}
