package conversion

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// MaxLost is the greatest size, in bytes, of what one object may lose in a
	// version: admission refuses a v1 object that would lose more, and a
	// greater annotation on another version counts as absent.
	MaxLost = 64 << 10
	// maxLostEntries bounds the work that a forged annotation can cause.
	maxLostEntries = 256
)

// losses are what a version cannot say of a spec, as changes to what
// converting it back gives. Its JSON is the value of v1.RestoreAnnotation:
//
//	{"set": {"/roles/Worker/topology": {"required": "rack"}}, "unset": [], "order": []}
//
// The keys are pointers from the spec, with roles by name.
type losses struct {
	set   map[string]tree
	unset []string
	// order of the roles, where it is not the one that converting gives.
	order []string
}

func (l losses) empty() bool {
	return len(l.set) == 0 && len(l.unset) == 0 && len(l.order) == 0
}

// encode gives the value of the annotation, or the empty string where nothing
// is lost.
func (l losses) encode() string {
	if l.empty() {
		return ""
	}
	object := map[string]any{}
	if len(l.set) > 0 {
		object["set"] = l.set
	}
	if len(l.unset) > 0 {
		object["unset"] = toList(l.unset)
	}
	if len(l.order) > 0 {
		object["order"] = toList(l.order)
	}
	return string(encodeTree(object))
}

func toList(names []string) []any {
	list := make([]any, len(names))
	for i, name := range names {
		list[i] = name
	}
	return list
}

// parseLosses reads the value of an annotation, which anybody may have
// written. What is not exactly in form counts as absent.
func parseLosses(text string) (l losses, ok bool) {
	parsed, err := parseTree([]byte(text))
	object, isObject := parsed.(map[string]any)
	if err != nil || !isObject {
		return losses{}, false
	}
	for name, value := range object {
		switch name {
		case "set":
			if l.set, ok = value.(map[string]any); !ok {
				return losses{}, false
			}
		case "unset":
			if l.unset, ok = toNames(value); !ok {
				return losses{}, false
			}
		case "order":
			if l.order, ok = toNames(value); !ok {
				return losses{}, false
			}
		default:
			return losses{}, false
		}
	}
	for text := range l.set {
		if !jsontext.Pointer(text).IsValid() || text == "" {
			return losses{}, false
		}
	}
	return l, len(l.set)+len(l.unset)+len(l.order) <= maxLostEntries
}

func toNames(value tree) ([]string, bool) {
	list, ok := value.([]any)
	names := make([]string, len(list))
	for i, item := range list {
		if names[i], ok = item.(string); !ok {
			return nil, false
		}
	}
	return names, ok
}

// difference gives the changes that make base into want.
func difference(base, want tree) losses {
	l := losses{set: map[string]tree{}}
	l.compare(nil, base, want)
	slices.Sort(l.unset)
	return l
}

func (l *losses) compare(at pointer, base, want tree) {
	if equalTrees(base, want) {
		return
	}
	if baseObject, ok := base.(map[string]any); ok {
		if wantObject, ok := want.(map[string]any); ok {
			l.compareObjects(at, baseObject, wantObject)
			return
		}
	}
	if baseList, ok := base.([]any); ok && len(at) == 1 {
		if wantList, ok := want.([]any); ok && l.compareRoles(at, baseList, wantList) {
			return
		}
	}
	l.set[at.String()] = want
}

func (l *losses) compareObjects(at pointer, base, want map[string]any) {
	for name, value := range want {
		if old, ok := base[name]; ok {
			l.compare(at.child(name), old, value)
		} else {
			l.set[at.child(name).String()] = value
		}
	}
	for name := range base {
		if _, ok := want[name]; !ok {
			l.unset = append(l.unset, at.child(name).String())
		}
	}
}

// compareRoles compares two lists of the same roles, one by one. It reports
// false where they are not that.
func (l *losses) compareRoles(at pointer, base, want []any) bool {
	list := at[0]
	if !isRoleList(list, base) || !isRoleList(list, want) || len(base) != len(want) {
		return false
	}
	order := make([]string, len(want))
	inOrder := true
	for i, item := range want {
		order[i], _ = roleName(list, item)
		j := roleIndex(list, base, order[i])
		if j < 0 {
			return false
		}
		inOrder = inOrder && i == j
	}
	if !inOrder && list != "roles" {
		return false // No converter changes the order of another list.
	}
	for i, name := range order {
		l.compare(at.child(name), base[roleIndex(list, base, name)], want[i])
	}
	if !inOrder {
		l.order = order
	}
	return true
}

// restore brings back into dst, converted from src, what kept says was lost, as
// far as the author of src does not say otherwise: converting back what was
// restored must give src, or at least what converting dst back gives. So it can
// add only what src's version cannot say, or what says there exactly the same.
func (s *spoke) restore(src, dst tree, kept string, up bool) (tree, error) {
	if up && len(kept) > MaxLost {
		return dst, nil
	}
	l, ok := parseLosses(kept)
	if _, isObject := dst.(map[string]any); !isObject || !ok {
		return dst, nil
	}
	said, err := s.convertTree(dst, !up)
	if err != nil {
		return nil, err
	}
	back := s.half(!up)
	fits := back.fits(encodeTree(dst)) == nil
	allowed := func(candidate tree) bool {
		if up && fits && back.fits(encodeTree(candidate)) != nil {
			return false
		}
		again, err := s.convertTree(candidate, !up)
		return err == nil && (equalTrees(again, src) || equalTrees(again, said))
	}
	if all := l.apply(cloneTree(dst)); allowed(all) {
		return all, nil
	}
	for _, one := range l.single() {
		if candidate := one.apply(cloneTree(dst)); allowed(candidate) {
			dst = candidate
		}
	}
	return dst, nil
}

// apply makes the changes to a spec in place, but for those in a role that is
// not there.
func (l losses) apply(spec tree) tree {
	for _, text := range l.unset {
		remove(spec, parsePointer(text))
	}
	for _, text := range slices.Sorted(maps.Keys(l.set)) {
		assign(spec, parsePointer(text), cloneTree(l.set[text]))
	}
	if len(l.order) > 0 {
		sortRoles(spec, l.order)
	}
	return spec
}

// single gives each change by itself, in a fixed order.
func (l losses) single() []losses {
	var all []losses
	for _, text := range slices.Sorted(maps.Keys(l.set)) {
		all = append(all, losses{set: map[string]tree{text: l.set[text]}})
	}
	for _, text := range l.unset {
		all = append(all, losses{unset: []string{text}})
	}
	if len(l.order) > 0 {
		all = append(all, losses{order: l.order})
	}
	return all
}

// sortRoles puts the roles of a spec in an order; roles that it does not name
// keep theirs and come last.
func sortRoles(spec tree, order []string) {
	object, _ := spec.(map[string]any)
	list, ok := object["roles"].([]any)
	if !ok || !isRoleList("roles", list) {
		return
	}
	place := func(item any) int {
		name, _ := roleName("roles", item)
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b any) int { return place(a) - place(b) })
	object["roles"] = list
}
