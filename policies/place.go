package policies

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// itemKeys are what tells the items of lists apart, by the lists' names, as
// server-side apply tells them, and tolerations by all that they say but the time;
// those of all others are told by their name, and texts and numbers by themselves.
var itemKeys = map[string][]string{
	"hostAliases":               {"ip"},
	"matchExpressions":          {"key", "operator"},
	"matchFields":               {"key", "operator"},
	"ownerReferences":           {"uid"},
	"ports":                     {"containerPort", "port", "protocol"},
	"tolerations":               {"effect", "key", "operator", "value"},
	"topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"},
	"volumeDevices":             {"devicePath"},
	"volumeMounts":              {"mountPath"},
}

var nameKey = []string{"name"}

// placeOf gives a field path of an object for comparing only. The items of a list
// are told by what tells them apart, where something does: a container that is
// added before others moves them to other indices, and changes none. So
// spec.containers[1].image is spec.containers["main"].image.
func placeOf(path string, object ast.Value) string {
	steps, ok := splitPath(path)
	if !ok {
		return path
	}
	var place strings.Builder
	at, list := object, ""
	for _, step := range steps {
		next, key := valueIn(at, []string{step.key}), step.key
		if items, isList := at.(*ast.Array); isList && next != nil {
			if told := identityOf(next, items, list); told != nil {
				key = told.String()
			}
		}
		place.WriteString("[" + key + "]")
		at, list = next, step.key
	}
	return place.String()
}

// identityOf is what tells an item of a list from the others, nil if nothing does.
func identityOf(item ast.Value, items *ast.Array, list string) ast.Value {
	keys, known := itemKeys[list]
	if !known {
		keys = nameKey
	}
	identity := membersOf(item, keys)
	if identity == nil {
		return nil
	}
	alike := 0
	items.Foreach(func(other *ast.Term) {
		if sameValue(membersOf(other.Value, keys), identity) {
			alike++
		}
	})
	if alike != 1 {
		return nil
	}
	return identity
}

// membersOf are some members of an object in one value, nil if it has none of them,
// and what is no object itself.
func membersOf(item ast.Value, names []string) ast.Value {
	if ast.IsScalar(item) {
		return item
	}
	object, is := item.(ast.Object)
	if !is {
		return nil
	}
	found := ast.NewObject()
	for _, name := range names {
		if member := object.Get(stringTerm(name)); member != nil && ast.IsScalar(member.Value) {
			found.Insert(stringTerm(name), member)
		}
	}
	if found.Len() == 0 {
		return nil
	}
	return found
}
