package conversion

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// A fieldTable pairs the fields of v1's spec with those of a spoke's.
type fieldTable struct {
	// pairs of fields that mean the same; whatever is below one is below the
	// other, too.
	pairs []fieldPair
	// roles tells where a spoke keeps its roles.
	roles roleMaps
}

// A fieldPair names one field in both versions, as names from the spec joined
// by slashes. The spoke's name is empty where it cannot say the field.
type fieldPair struct {
	hub, spoke string
}

// roleMaps tells which members of a spoke's spec are maps of roles by name.
type roleMaps interface {
	// inUse gives the map that the roles of a spec, of either version, are in.
	inUse(spec tree) string
	// scaled gives the role whose replicas v1 keeps in elastic.replicas.
	scaled() string
}

// convert gives where the value that p leads to in spec is in the other
// version. It keeps p where the table knows nothing of it.
func (t fieldTable) convert(p pointer, spec tree, up bool) pointer {
	if to, ok := t.lookUp(p, spec, up); ok {
		return to
	}
	return p
}

// lookUp is convert that tells whether the other version can say the value.
func (t fieldTable) lookUp(p pointer, spec tree, up bool) (pointer, bool) {
	roleMap := t.roles.inUse(spec)
	if !up && slices.Equal(p, pointer{"elastic", "replicas"}) {
		return pointer{roleMap, t.roles.scaled(), "replicas"}, true
	}
	if to, known := t.paired(p, up); known {
		return to, to != nil
	}
	switch {
	case up && p[0] == roleMap:
		return append(pointer{"roles"}, p[1:]...), true
	case !up && p[0] == "framework":
		return pointer{roleMap}, true
	case !up && p[0] == "roles":
		return roleField(p, roleMap)
	case !up:
		return t.firstBelow(p, spec)
	}
	return nil, false
}

// firstBelow gives, for a block of fields that the spoke has no block for, the
// first field of it that a v1 spec sets and the spoke can say.
func (t fieldTable) firstBelow(p pointer, spec tree) (pointer, bool) {
	block := strings.Join(p, "/") + "/"
	for _, pair := range t.pairs {
		if pair.spoke == "" || !strings.HasPrefix(pair.hub, block) {
			continue
		}
		if _, set := lookUp(spec, strings.Split(pair.hub, "/")); set {
			return strings.Split(pair.spoke, "/"), true
		}
	}
	return nil, false
}

// paired looks p up in the pairs, longest first. It gives nil where a pair says
// that the other version cannot say the value.
func (t fieldTable) paired(p pointer, up bool) (to pointer, known bool) {
	for n := len(p); n > 0; n-- {
		for _, pair := range t.pairs {
			from, to := pair.hub, pair.spoke
			if up {
				from, to = to, from
			}
			if from == "" || !slices.Equal(p[:n], strings.Split(from, "/")) {
				continue
			}
			if to == "" {
				return nil, true
			}
			return append(pointer(strings.Split(to, "/")), p[n:]...), true
		}
	}
	return nil, false
}

// roleField gives where a field of v1's roles is in a map of roles by name.
func roleField(p pointer, roleMap string) (pointer, bool) {
	switch {
	case len(p) > 2 && p[2] == "topology":
		return nil, false
	case len(p) == 3 && p[2] == "name":
		return pointer{roleMap, p[1]}, true
	default:
		return append(pointer{roleMap}, p[1:]...), true
	}
}

// FieldPaths gives a function that maps the path of a field of a v1 object,
// such as spec.roles[1].replicas, to the path of the same field in the kind
// and version that a request was made in: spec.pytorchReplicaSpecs.Worker.replicas.
// A field which that version cannot say is in the annotation that keeps it.
// hub is the JSON of the v1 object; for a v1 kind paths stay as they are.
func FieldPaths(kind schema.GroupVersionKind, hub []byte) func(path string) string {
	if own, ok := upstreamKinds[kind]; ok {
		kind = own
	}
	k := kinds[kind.GroupKind()]
	if k == nil || k.spokes[kind.Version] == nil {
		return func(path string) string { return path }
	}
	table := k.spokes[kind.Version].paths
	object, err := splitObject(hub)
	if err != nil {
		return func(path string) string { return path }
	}
	spec, err := parseTree(object.rawSpec())
	if err != nil {
		spec = nil
	}
	return func(path string) string { return table.text(path, spec) }
}

// text maps the text of a path from v1 to the spoke.
func (t fieldTable) text(path string, spec tree) string {
	segments := splitPath(path)
	if len(segments) < 2 || segments[0] != "spec" {
		return path
	}
	to, ok := t.lookUp(toPointer(segments[1:], spec), spec, false)
	if !ok {
		return "metadata.annotations[" + v1.RestoreAnnotation + "]"
	}
	var out strings.Builder
	out.WriteString("spec")
	for _, segment := range to {
		if !strings.HasPrefix(segment, "[") {
			out.WriteByte('.')
		}
		out.WriteString(segment)
	}
	return out.String()
}

// toPointer makes a pointer of the segments of a path: roles[1] becomes the
// role's name, other brackets are kept as they are.
func toPointer(segments []string, spec tree) pointer {
	p := pointer(slices.Clone(segments))
	if len(p) < 2 || p[0] != "roles" || !strings.HasPrefix(p[1], "[") {
		return p
	}
	key := strings.Trim(p[1], "[]")
	p[1] = key
	object, _ := spec.(map[string]any)
	list, _ := object["roles"].([]any)
	if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(list) {
		if role, ok := list[i].(map[string]any); ok {
			if name, ok := role["name"].(string); ok {
				p[1] = name
			}
		}
	}
	return p
}

// splitPath splits a path at its dots and brackets; a bracket is a segment of
// its own, with the brackets, whatever is in it.
func splitPath(path string) []string {
	var segments []string
	for path != "" {
		end := strings.IndexAny(path, ".[")
		switch {
		case path[0] == '[':
			end = strings.IndexByte(path, ']') + 1
			if end == 0 {
				end = len(path)
			}
			segments = append(segments, path[:end])
			path = strings.TrimPrefix(path[end:], ".")
		case end < 0:
			return append(segments, path)
		default:
			segments = append(segments, path[:end])
			path = strings.TrimPrefix(path[end:], ".")
		}
	}
	return segments
}
