package policies

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// reads says which parts of the input a rule may look at.
type reads struct {
	user      bool
	namespace bool
	review    bool
	// operation tells that the rule looks at what is being done, or at the
	// object before it.
	operation bool
	// document tells that the rule reads members of the object at the top of
	// the input, as rules written for conftest do.
	document bool
	// managedFields tells that the rule may look at metadata.managedFields.
	managedFields bool
}

// inputMembers are the members that the input has for every policy.
var inputMembers = []string{"object", "oldObject", "operation", "user", "namespace", "parameters", "review"}

// requestMembers are the members of a review that say what is being done.
var requestMembers = []string{"operation", "options", "dryRun", "uid", "subResource", "requestSubResource"}

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
		*r = reads{user: true, namespace: true, review: true, operation: true, document: true, managedFields: true}
	case member == "user":
		r.user = true
	case member == "namespace":
		r.namespace = true
	case member == "operation":
		r.operation = true
	case member == "object", member == "oldObject":
		r.operation = r.operation || member == "oldObject"
		r.addObject(ref, 2)
	case member == "review":
		r.addReview(ref)
	case !slices.Contains(inputMembers, member):
		r.document = true
		r.addObject(ref, 1)
	}
}

func (r *reads) addReview(ref ast.Ref) {
	r.review = true
	member, ok := memberName(ref, 2)
	switch {
	case !ok:
		r.user, r.namespace, r.operation, r.managedFields = true, true, true, true
	case member == "userInfo":
		r.user = true
	case member == "namespaceObject":
		r.namespace = true
	case member == "object", member == "oldObject":
		r.operation = r.operation || member == "oldObject"
		r.addObject(ref, 3)
	case slices.Contains(requestMembers, member):
		r.operation = true
	}
}

// addObject looks at what a reference takes from an object, whose members are
// named at a position of the reference.
func (r *reads) addObject(ref ast.Ref, position int) {
	member, ok := memberName(ref, position)
	if ok && member != "metadata" {
		return
	}
	if inMetadata, known := memberName(ref, position+1); ok && known && inMetadata != "managedFields" {
		return
	}
	r.managedFields = true
}

// memberName returns the constant at a position of a reference, if there is one.
func memberName(ref ast.Ref, position int) (string, bool) {
	if len(ref) <= position {
		return "", false
	}
	name, ok := ref[position].Value.(ast.String)
	return string(name), ok
}

// and returns what either of two rules reads.
func (r reads) and(other reads) reads {
	return reads{
		user:          r.user || other.user,
		namespace:     r.namespace || other.namespace,
		review:        r.review || other.review,
		operation:     r.operation || other.operation,
		document:      r.document || other.document,
		managedFields: r.managedFields || other.managedFields,
	}
}
