package policies

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// reads says which parts of the input a rule may look at.
type reads struct {
	user      bool
	namespace bool
	// document tells that the rule reads members of the object at the top of
	// the input, as rules written for conftest do.
	document bool
}

// inputMembers are the members that the input has for every policy.
var inputMembers = []string{"object", "oldObject", "operation", "user", "namespace", "parameters", "review"}

// readsOf finds what a compiled module reads. Where the text does not say, as
// in input[x], it assumes the most.
func readsOf(module *ast.Module) reads {
	var found reads
	ast.WalkRefs(module, func(ref ast.Ref) bool {
		if ref.HasPrefix(ast.InputRootRef) {
			found.add(ref)
		}
		return false
	})
	return found
}

func (r *reads) add(ref ast.Ref) {
	member, ok := memberName(ref, 1)
	switch {
	case !ok:
		r.user, r.namespace, r.document = true, true, true
	case member == "user":
		r.user = true
	case member == "namespace":
		r.namespace = true
	case member == "review":
		r.addReview(ref)
	case !slices.Contains(inputMembers, member):
		r.document = true
	}
}

func (r *reads) addReview(ref ast.Ref) {
	member, ok := memberName(ref, 2)
	switch {
	case !ok:
		r.user, r.namespace = true, true
	case member == "userInfo":
		r.user = true
	case member == "namespaceObject":
		r.namespace = true
	}
}

// memberName returns the constant at a position of a reference, if there is one.
func memberName(ref ast.Ref, position int) (string, bool) {
	if len(ref) <= position {
		return "", false
	}
	name, ok := ref[position].Value.(ast.String)
	return string(name), ok
}
