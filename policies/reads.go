package policies

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// reads says which parts of the input a rule may look at.
type reads struct {
	user bool
	// namespace tells that the rule may look at the labels of the namespace.
	namespace bool
	review    bool
	// options tells that the rule looks at the options of a request, such as who
	// manages the fields that are written.
	options bool
	// write tells that the rule names who makes a request, its options or the old
	// object: that it is about the write, and not about what is written alone.
	write bool
	// document tells that the rule reads members of the object at the top of
	// the input, as rules written for conftest do.
	document bool
	// managedFields tells that the rule may look at metadata.managedFields.
	managedFields bool
}

// inputMembers are the members that the input has for every policy.
var inputMembers = []string{"object", "oldObject", "operation", "user", "namespace", "parameters", "review"}

// inputRoot follows the input.
var inputRoot = flowRoot{
	length: 1,
	leads:  func(ref ast.Ref) bool { return ref.HasPrefix(ast.InputRootRef) },
	isKind: func(inventoryPath) bool { return false },
}

// readsOf sums up what compiled modules read of the input, through variables,
// functions and rules. Where the text does not say, as in input[x], it assumes
// the most.
func readsOf(all []valueRead) reads {
	var found reads
	for _, read := range all {
		found.add(read)
	}
	return found
}

// ReadsUser reports whether the rule may look at who makes a request.
func (p *Policy) ReadsUser() bool { return p.rule != nil && p.rule.reads.user }

// memberAt gives the member at a position of a path; said is false where the
// path ends before it or the Rego does not say.
func memberAt(path inventoryPath, position int) (member string, said bool) {
	if position >= len(path) || path[position] == anyMember {
		return "", false
	}
	return path[position], true
}

func (r *reads) add(read valueRead) {
	if len(read.path) == 0 && !read.whole {
		return // It is handed on, and seen where it is read.
	}
	member, ok := memberAt(read.path, 0)
	switch {
	case !ok:
		*r = reads{user: true, namespace: true, review: true, options: true, document: true, managedFields: true}
	case member == "user":
		r.user, r.write = true, true
	case member == "namespace":
		r.addNamespace(read)
	case member == "object", member == "oldObject":
		r.write = r.write || member == "oldObject"
		r.addObject(read, 1)
	case member == "review":
		r.addReview(read)
	case !slices.Contains(inputMembers, member):
		r.document = true
		r.addObject(read, 0)
	}
}

// addNamespace looks at what is read of the namespace. Its name is that of the
// request.
func (r *reads) addNamespace(read valueRead) {
	if member, ok := memberAt(read.path, 1); ok && member == "name" || len(read.path) == 1 && !read.whole {
		return
	}
	r.namespace = true
}

func (r *reads) addReview(read valueRead) {
	r.review = true
	member, ok := memberAt(read.path, 1)
	switch {
	case !ok && len(read.path) == 1 && !read.whole:
		return // It is handed on.
	case !ok:
		r.user, r.namespace, r.options, r.managedFields = true, true, true, true
	case member == "userInfo":
		r.user, r.write = true, true
	case member == "namespaceObject", member == "_unstable":
		r.namespace = true
	case member == "object", member == "oldObject":
		r.write = r.write || member == "oldObject"
		r.addObject(read, 2)
	case member == "options":
		r.options, r.write = true, true
	}
}

// addObject looks at what is read of an object, whose members are named at a
// position of the path.
func (r *reads) addObject(read valueRead, position int) {
	if !read.whole && len(read.path) <= position+1 {
		return // It is handed on.
	}
	member, ok := memberAt(read.path, position)
	if ok && member != "metadata" {
		return
	}
	if inMetadata, known := memberAt(read.path, position+1); ok && known && inMetadata != "managedFields" {
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
		options:       r.options || other.options,
		write:         r.write || other.write,
		document:      r.document || other.document,
		managedFields: r.managedFields || other.managedFields,
	}
}
