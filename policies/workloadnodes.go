package policies

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// What the shared library says of the nodes that pods ask for: objects by name,
// as they are in the inventory.

// met reports whether one of nodes offers what a wish needs and carries the
// labels that it selects.
func met(wish, nodes *ast.Term) *ast.Term {
	name, needs, selector := get(wish, "name"), get(wish, "needs"), get(wish, "selector")
	all, ok := nodes.Value.(ast.Object)
	if !ok || !isText(name) || needs == nil || !isLabels(selector) {
		return nil
	}
	return ast.InternedTerm(all.Until(func(_, node *ast.Term) bool {
		allocatable := get(node, "status.allocatable")
		if !isObject(allocatable) {
			return false
		}
		offered := allocatable.Value.(ast.Object).Get(name)
		if offered = quantityOf(offered); offered == nil || offered.Value.Compare(needs.Value) < 0 {
			return false
		}
		return carries(node, selector.Value.(ast.Object))
	}))
}

// isLabels reports whether a value maps names to texts.
func isLabels(value *ast.Term) bool {
	return isObject(value) && !value.Value.(ast.Object).Until(func(_, label *ast.Term) bool { return !isText(label) })
}

func carries(node *ast.Term, selector ast.Object) bool {
	metadata := get(node, "metadata")
	if !isObject(metadata) {
		return false
	}
	labels := or(get(metadata, "labels"), ast.InternedEmptyObject)
	return isObject(labels) && !selector.Until(func(key, wanted *ast.Term) bool {
		value := labels.Value.(ast.Object).Get(key)
		return value == nil || !value.Equal(wanted)
	})
}

// held reports whether one domain, the nodes with the same value of the label
// key, has so many devices whose names match patterns for pods that need each of
// them. The first domain that does ends the search.
func held(key, each, needed, patterns, nodes *ast.Term) *ast.Term {
	all, ok := nodes.Value.(ast.Object)
	list, listed := patternsOf(patterns)
	size, sized := small(each)
	if !ok || !listed || !sized || size <= 0 || !isText(key) || !isNumber(needed) {
		return nil
	}
	given := map[ast.String]*amounts{}
	strange := false
	holds := all.Until(func(_, node *ast.Term) bool {
		labels := get(node, "metadata.labels")
		if !isObject(labels) {
			return false
		}
		domain := labels.Value.(ast.Object).Get(key)
		if domain == nil {
			return false
		}
		name, named := domain.Value.(ast.String)
		offered, counted := offeredBy(node, list)
		if strange = !named || !counted; strange {
			return true
		}
		if given[name] == nil {
			given[name] = &amounts{}
		}
		given[name].add(ast.InternedTerm(offered / size * size))
		return given[name].total().Value.Compare(needed.Value) >= 0
	})
	if strange {
		return nil
	}
	return ast.InternedTerm(holds)
}

// offeredBy is how many devices a node offers, and whether that is a whole number
// that is not large, as nearly all are.
func offeredBy(node *ast.Term, patterns *ast.Array) (int, bool) {
	allocatable := get(node, "status.allocatable")
	if allocatable == nil {
		return 0, true
	}
	if !isObject(allocatable) {
		return 0, false
	}
	offered := 0
	odd := allocatable.Value.(ast.Object).Until(func(name, amount *ast.Term) bool {
		if !matches(patterns, textOf(name)) {
			return false
		}
		n := quantityOf(amount)
		if n == nil {
			return false
		}
		whole, ok := small(n)
		offered += whole
		return !ok || whole < 0
	})
	return offered, !odd && offered < smallNumber
}

// quantityOf is the value of a quantity that may be missing.
func quantityOf(value *ast.Term) *ast.Term {
	if value == nil {
		return nil
	}
	return quantity(value)
}
