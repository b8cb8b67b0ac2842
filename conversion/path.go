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
	// pairs of fields that mean the same.
	pairs fieldPairs
	// roles tells where a spoke keeps its roles.
	roles roleFields
}

// A fieldPair names one field in both versions, as names from the spec, or from
// the role, joined by slashes. The spoke's name is empty where it cannot say the
// field.
type fieldPair struct {
	hub, spoke string
}

// fieldPairs are pairs of fields that mean the same; whatever is below one is
// below the other, too.
type fieldPairs []fieldPair

// roleFields tells where a spoke keeps its roles.
type roleFields interface {
	// lookUp gives where the value that p leads to in spec is in the other
	// version, nil where that cannot say it; known is false where p leads to no
	// role, nor to anything that is in one there.
	lookUp(p pointer, spec tree, up bool) (to pointer, known bool)
	// position gives where the role at that position of a v1 spec's roles is in
	// the spoke's list of them, if it keeps them in one.
	position(role int, roles []any) int
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
	if to, known := t.roles.lookUp(p, spec, up); known {
		return to, to != nil
	}
	if to, known := t.pairs.lookUp(p, up); known {
		return to, to != nil
	}
	if !up {
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

// lookUp looks p up in the pairs, longest first. It gives nil where a pair says
// that the other version cannot say the value.
func (pairs fieldPairs) lookUp(p pointer, up bool) (to pointer, known bool) {
	for n := len(p); n > 0; n-- {
		for _, pair := range pairs {
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
	p, role := toPointer(segments[1:], spec)
	object, _ := spec.(map[string]any)
	roles, _ := object["roles"].([]any)
	to, ok := t.lookUp(p, spec, false)
	switch {
	case !ok && !t.isField(p[0]):
		return path // It came from the spoke as it was, as v1 has no such field.
	case !ok:
		return "metadata.annotations[" + v1.RestoreAnnotation + "]"
	}
	var out strings.Builder
	out.WriteString("spec")
	for i, segment := range to {
		switch {
		case i == 1 && role >= 0 && roleKeys[to[0]] != "":
			segment = "[" + strconv.Itoa(t.roles.position(role, roles)) + "]"
		case !strings.HasPrefix(segment, "["):
			out.WriteByte('.')
		}
		out.WriteString(segment)
	}
	return out.String()
}

// isField reports whether v1's spec has a field.
func (t fieldTable) isField(name string) bool {
	return name == "roles" || slices.ContainsFunc(t.pairs, func(pair fieldPair) bool {
		first, _, _ := strings.Cut(pair.hub, "/")
		return first == name
	})
}

// toPointer makes a pointer of the segments of a path: roles[1] becomes the
// role's name, unless an earlier role has that, too; other brackets are kept as
// they are. role is the position of the
// role, -1 where the path leads to none.
func toPointer(segments []string, spec tree) (p pointer, role int) {
	p = slices.Clone(segments)
	if len(p) < 2 || p[0] != "roles" || !strings.HasPrefix(p[1], "[") {
		return p, -1
	}
	key := strings.Trim(p[1], "[]")
	p[1] = key
	object, _ := spec.(map[string]any)
	list, _ := object["roles"].([]any)
	i, err := strconv.Atoi(key)
	if err != nil || i < 0 || i >= len(list) {
		return p, -1
	}
	named := func(name string) func(any) bool {
		return func(role any) bool { other, ok := roleName("roles", role); return ok && other == name }
	}
	if name, ok := roleName("roles", list[i]); ok {
		p[1] = name
		if slices.ContainsFunc(list[:i], named(name)) {
			p[1] = "[" + key + "]"
		}
	}
	return p, i
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
