package policies

import (
	"strconv"
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

// itemDefaults are what an item has that does not say it: the stored object of a
// file may not say what the API server would have written into it.
var itemDefaults = map[string]map[string]*ast.Term{
	"ports":       {"protocol": ast.StringTerm("TCP")},
	"tolerations": {"operator": ast.StringTerm("Equal")},
}

// places gives field paths of one object for comparing only.
type places struct {
	object ast.Value
	// told are what tells the items of lists from one another, by the lists: nil for
	// an item that nothing does.
	told map[*ast.Array][]*string
}

func placesIn(object ast.Value) *places {
	return &places{object: object, told: map[*ast.Array][]*string{}}
}

// of gives the place of a field path. The items of a list
// are told by what tells them apart, where something does: a container that is
// added before others moves them to other indices, and changes none. So
// spec.containers[1].image is spec.containers["main"].image.
func (p *places) of(path string) string {
	steps, ok := splitPath(path)
	if !ok {
		return path
	}
	var place strings.Builder
	at, list := p.object, ""
	for _, step := range steps {
		next, key := valueIn(at, []string{step.key}), step.key
		if items, isList := at.(*ast.Array); isList && next != nil {
			if index, err := strconv.Atoi(step.key); err == nil && index < items.Len() {
				if told := p.items(items, list)[index]; told != nil {
					key = *told
				}
			}
		}
		place.WriteString("[" + key + "]")
		at, list = next, step.key
	}
	return place.String()
}

// items gives what tells each item of a list from the others, nil if nothing does.
func (p *places) items(items *ast.Array, list string) []*string {
	if told, ok := p.told[items]; ok {
		return told
	}
	keys, known := itemKeys[list]
	if !known {
		keys = nameKey
	}
	told, alike := make([]*string, 0, items.Len()), map[string]int{}
	items.Foreach(func(item *ast.Term) {
		identity := membersOf(item.Value, keys, itemDefaults[list])
		if identity == nil {
			told = append(told, nil)
			return
		}
		text := identity.String()
		alike[text]++
		told = append(told, &text)
	})
	for i, text := range told {
		if text != nil && alike[*text] > 1 {
			told[i] = nil
		}
	}
	p.told[items] = told
	return told
}

// membersOf are some members of an object in one value, nil if it has none of them,
// and what is no object itself.
func membersOf(item ast.Value, names []string, defaults map[string]*ast.Term) ast.Value {
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
	for name, value := range defaults {
		if found.Get(stringTerm(name)) == nil {
			found.Insert(stringTerm(name), value)
		}
	}
	return found
}
