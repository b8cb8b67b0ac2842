package policies

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inventoryView is data.inventory as one policy sees it: of the objects at one
// moment, those of the kinds that the policy names.
type inventoryView struct {
	// Store is empty; it answers for all of data but the inventory.
	storage.Store
	kinds []*kindState
	// last is where the policy keeps what it last made of all namespaces.
	last *atomic.Pointer[namespacesTerm]
}

// view returns data.inventory for a policy whose kinds are all synced, and
// otherwise the first kind that is not.
func (s *inventoryState) view(p *Policy) (view *inventoryView, missing schema.GroupVersionKind, ok bool) {
	view = &inventoryView{Store: noData.store, kinds: make([]*kindState, 0, len(p.inventory)), last: p.namespaces}
	for _, kind := range p.inventoryKinds {
		known := s.kinds[kind]
		if known == nil || !known.synced || !known.kept.covers(p.inventory[kind]) {
			return nil, kind, false
		}
		view.kinds = append(view.kinds, known)
	}
	return view, missing, true
}

var errNotInInventory = &storage.Error{Code: storage.NotFoundErr, Message: "document does not exist"}

// Read returns what is at a path of data. Rules that name an object come here
// with its whole path, those that go through many with that of the many.
func (v *inventoryView) Read(_ context.Context, _ storage.Transaction, path storage.Path) (any, error) {
	if len(path) == 0 {
		return ast.NewObject([2]*ast.Term{ast.StringTerm("inventory"), v.rootTerm()}), nil
	}
	if path[0] != "inventory" {
		return nil, errNotInInventory
	}
	found := v.find(path[1:])
	if found == nil {
		return nil, errNotInInventory
	}
	return found, nil
}

func (v *inventoryView) find(path []string) ast.Value {
	if len(path) == 0 {
		return v.rootTerm().Value
	}
	switch {
	case path[0] == "cluster":
		return v.findIn("", path[1:])
	case path[0] != "namespace":
		return nil
	case len(path) == 1:
		return valueOf(v.namespacesTerm())
	}
	return v.findIn(path[1], path[2:])
}

// findIn finds a value below the objects of a namespace.
func (v *inventoryView) findIn(namespace string, path []string) ast.Value {
	if len(path) < 2 {
		all := valueOf(groupTerm(v.leaves(namespace)))
		if all == nil {
			return nil
		}
		return valueIn(all, path)
	}
	found := v.leafOf(namespace, path)
	switch {
	case found == nil:
		return nil
	case len(path) == 2:
		return found.term().Value
	}
	object, ok := found.objects.get(path[2])
	if !ok {
		return nil
	}
	return valueIn(object.Value, path[3:])
}

// leafOf returns the objects of a kind, by its version and name, in a namespace;
// nil when there are none.
func (v *inventoryView) leafOf(namespace string, path []string) *leaf {
	i := slices.IndexFunc(v.kinds, func(k *kindState) bool {
		return k.kind.Kind == path[1] && k.kind.GroupVersion().String() == path[0]
	})
	if i < 0 {
		return nil
	}
	return v.kinds[i].leaf(namespace)
}

// clusterTerm is the objects of a cluster-scoped kind, by name; nil when there are
// none.
func (v *inventoryView) clusterTerm(path []string) *ast.Term {
	if found := v.leafOf("", path); found != nil {
		return found.term()
	}
	return nil
}

// leaf returns the objects of a namespace, nil when there are none.
func (k *kindState) leaf(namespace string) *leaf {
	if namespace == "" {
		return k.cluster
	}
	found, _ := k.namespaces.get(namespace)
	return found
}

// kindLeaf is the objects of a kind in a namespace.
type kindLeaf struct {
	kind schema.GroupVersionKind
	*leaf
}

func (v *inventoryView) leaves(namespace string) []kindLeaf {
	var found []kindLeaf
	for _, kind := range v.kinds {
		if leaf := kind.leaf(namespace); leaf != nil {
			found = append(found, kindLeaf{kind.kind, leaf})
		}
	}
	return found
}

// groupTerm is objects by apiVersion, kind and name; nil when there are none.
func groupTerm(leaves []kindLeaf) *ast.Term {
	if len(leaves) == 0 {
		return nil
	}
	versions := ast.NewObject()
	for _, one := range leaves {
		version := ast.StringTerm(one.kind.GroupVersion().String())
		kinds := ast.NewObject()
		if known := versions.Get(version); known != nil {
			known.Value.(ast.Object).Foreach(kinds.Insert)
		}
		kinds.Insert(ast.StringTerm(one.kind.Kind), one.term())
		versions.Insert(version, ast.NewTerm(kinds))
	}
	return ast.NewTerm(versions)
}

func (v *inventoryView) rootTerm() *ast.Term {
	root := ast.NewObject()
	if cluster := groupTerm(v.leaves("")); cluster != nil {
		root.Insert(ast.StringTerm("cluster"), cluster)
	}
	if namespaces := v.namespacesTerm(); namespaces != nil {
		root.Insert(ast.StringTerm("namespace"), namespaces)
	}
	return ast.NewTerm(root)
}

// namespacesTerm is what a policy made of all namespaces in one state of the
// inventory; most of it serves for the next state.
type namespacesTerm struct {
	kinds []*kindState
	of    map[string]namespaceTermOf
	term  *ast.Term
}

// namespaceTermOf is the term of one namespace and what it was made of.
type namespaceTermOf struct {
	leaves []kindLeaf
	term   *ast.Term
}

// namespacesTerm is data.inventory.namespace; nil when there are no objects.
func (v *inventoryView) namespacesTerm() *ast.Term {
	last := v.last.Load()
	if last != nil && slices.Equal(last.kinds, v.kinds) {
		return last.term
	}
	next := &namespacesTerm{kinds: v.kinds, of: map[string]namespaceTermOf{}}
	var pairs [][2]*ast.Term
	for _, kind := range v.kinds {
		for namespace := range kind.namespaces.all() {
			if _, made := next.of[namespace]; made {
				continue
			}
			one := namespaceTermOf{leaves: v.leaves(namespace)}
			if last != nil && slices.Equal(last.of[namespace].leaves, one.leaves) {
				one = last.of[namespace]
			} else {
				one.term = groupTerm(one.leaves)
			}
			next.of[namespace] = one
			pairs = append(pairs, [2]*ast.Term{ast.StringTerm(namespace), one.term})
		}
	}
	if len(pairs) > 0 {
		next.term = ast.NewTerm(ast.NewObject(pairs...))
	}
	v.last.Store(next)
	return next.term
}

// valueIn returns what lies at a path in a value, nil when nothing does.
func valueIn(value ast.Value, path []string) ast.Value {
	for _, segment := range path {
		var below *ast.Term
		switch container := value.(type) {
		case ast.Object:
			below = container.Get(ast.StringTerm(segment))
		case *ast.Array:
			if i, err := strconv.Atoi(segment); err == nil && i >= 0 && i < container.Len() {
				below = container.Elem(i)
			}
		}
		if below == nil {
			return nil
		}
		value = below.Value
	}
	return value
}

func valueOf(term *ast.Term) ast.Value {
	if term == nil {
		return nil
	}
	return term.Value
}

func compareKinds(a, b schema.GroupVersionKind) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
}
