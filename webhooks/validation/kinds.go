package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// A ServedKind is a kind that an API server serves.
type ServedKind struct {
	schema.GroupKind
	// Names are what else people call it: its resource, the singular, short names.
	Names []string
	// Subresources are those that it has, such as scale; nil where they are not
	// known.
	Subresources []string
}

// ServedKinds are kinds that are served, and how far they are known.
type ServedKinds struct {
	Kinds []ServedKind
	// All says that no other kinds are served; otherwise no more is known of a
	// group than the kinds that are listed of it.
	All bool
}

// anyName stands for every group, kind or subresource.
const anyName = "*"

// AdviseKinds returns what the author of a policy should know of the kinds and
// subresources that it names: that they are not served, and which were likely
// meant. Kinds that may still be installed are no fault.
func AdviseKinds(policy *v1.WorkloadPolicy, served ServedKinds) field.ErrorList {
	if policy == nil {
		return nil
	}
	path := field.NewPath("spec")
	var advice field.ErrorList
	for i, resources := range policy.Spec.Match.Resources {
		at := path.Child("match", "resources").Index(i)
		for j, kind := range resources.Kinds {
			advice = append(advice, served.adviseKind(schema.GroupKind{Group: resources.Group, Kind: kind}, at.Child("kinds").Index(j), "nothing is judged of it until it is installed")...)
		}
		advice = append(advice, served.adviseSubresources(resources, at.Child("subresources"))...)
	}
	for i, kind := range policy.Spec.Inventory {
		// An apiVersion that does not parse is refused for that.
		if version, err := schema.ParseGroupVersion(kind.APIVersion); err == nil {
			advice = append(advice, served.adviseKind(version.WithKind(kind.Kind).GroupKind(), path.Child("inventory").Index(i).Child("kind"),
				"the rule is not evaluated, and the failurePolicy answers, until it is installed: install what defines it, or take it out of the inventory and the rule")...)
		}
	}
	return advice
}

// Misspelt says of a kind that is not served which was likely meant; nothing where
// it is served, or none is near.
func (s ServedKinds) Misspelt(kind schema.GroupKind) string {
	if s.has(kind) {
		return ""
	}
	meant, certain := s.meant(kind)
	switch {
	case meant.Kind == "" || !certain:
		return ""
	case meant.Group == kind.Group:
		return fmt.Sprintf("%s is no kind that is known, and names are taken as they are spelt: write %s", inWords(kind), meant.Kind)
	default:
		return fmt.Sprintf("%s is no kind that is known; %s is in %s", inWords(kind), meant.Kind, groupInWords(meant.Group))
	}
}

// adviseKind is AdviseKinds of one kind; until says what it means that it is not
// served.
func (s ServedKinds) adviseKind(kind schema.GroupKind, path *field.Path, until string) field.ErrorList {
	if kind.Kind == anyName || kind.Group == v1.GroupName || s.has(kind) {
		return nil
	}
	meant, certain := s.meant(kind)
	switch {
	case meant.Kind != "" && (meant.Group == kind.Group || kind.Group == anyName):
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("%s is not served, and names are taken as they are spelt: write %s", inWords(kind), meant.Kind))}
	case meant.Kind != "" && (s.All || certain):
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("%s is not served; %s is in %s: name that group, unless the kind is to be installed", inWords(kind), meant.Kind, groupInWords(meant.Group)))}
	case !s.All && !certain:
		return nil
	default:
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("%s is not served: %s", inWords(kind), until))}
	}
}

// has reports whether a kind is served, in any group for the group *.
func (s ServedKinds) has(kind schema.GroupKind) bool {
	return slices.ContainsFunc(s.Kinds, func(one ServedKind) bool {
		return one.Kind == kind.Kind && (one.Group == kind.Group || kind.Group == anyName)
	})
}

// meant gives the kind that most likely was: of the same group the one of that
// name in other letters, of that resource or short name, or of a name that is
// near, and else the one of exactly that name in another group. certain tells
// that the group is known, so that the kind is not served.
func (s ServedKinds) meant(kind schema.GroupKind) (meant schema.GroupKind, certain bool) {
	names := map[string]schema.GroupKind{}
	var candidates []string
	for _, one := range s.Kinds {
		if one.Group != kind.Group && kind.Group != anyName {
			continue
		}
		certain = true
		for _, name := range append([]string{one.Kind}, one.Names...) {
			if strings.EqualFold(name, kind.Kind) {
				return one.GroupKind, true
			}
			if _, taken := names[name]; !taken {
				names[name] = one.GroupKind
				// A short name is near to all that is short.
				if len(name) > shortName {
					candidates = append(candidates, name)
				}
			}
		}
	}
	if name := Nearest(kind.Kind, candidates); name != "" {
		return names[name], true
	}
	for _, one := range s.Kinds {
		if one.Kind == kind.Kind {
			return one.GroupKind, certain
		}
	}
	return schema.GroupKind{}, certain
}

// shortName is how long the names are that no other is taken to be near to.
const shortName = 4

func (s ServedKinds) adviseSubresources(resources v1.PolicyResources, path *field.Path) field.ErrorList {
	// A subresource that one of the kinds has is one for these; that others have
	// none of it is how policies name several kinds at once.
	var known []string
	for _, kind := range resources.Kinds {
		i := slices.IndexFunc(s.Kinds, func(one ServedKind) bool {
			return one.GroupKind == schema.GroupKind{Group: resources.Group, Kind: kind}
		})
		if i < 0 || s.Kinds[i].Subresources == nil {
			return nil
		}
		known = append(known, s.Kinds[i].Subresources...)
	}
	var advice field.ErrorList
	for i, name := range resources.Subresources {
		if name == "" || name == anyName || slices.Contains(known, name) {
			continue
		}
		fix := "it has none"
		if len(known) > 0 {
			slices.Sort(known)
			known = slices.Compact(known)
			fix = "there are " + strings.Join(known, ", ")
		}
		if meant := Nearest(name, known); meant != "" {
			fix = "write " + meant
		}
		advice = append(advice, field.Forbidden(path.Index(i), fmt.Sprintf("%s has no subresource %s: %s", strings.Join(resources.Kinds, ", "), name, fix)))
	}
	return advice
}

func inWords(kind schema.GroupKind) string {
	switch kind.Group {
	case "":
		return kind.Kind + " of the core group"
	case anyName:
		return kind.Kind + " of any group"
	default:
		return kind.String()
	}
}

func groupInWords(group string) string {
	if group == "" {
		return "the core group"
	}
	return "group " + group
}
