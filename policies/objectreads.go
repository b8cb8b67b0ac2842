package policies

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// objectReads are what a rule reads of the object.
type objectReads struct {
	// named are the fields that its Rego tells.
	named *fields
	// lost are the members at the top, and anyMember for all, of which it does not
	// tell what is read.
	lost map[string]bool
}

// objectReadsOf sorts out what of some reads of the input is of the object, by
// whichever name. What the shared library reads counts as lost: it looks for pods
// wherever a kind has them.
func objectReadsOf(reads []valueRead, shared bool) objectReads {
	found := objectReads{named: &fields{}, lost: map[string]bool{}}
	if shared {
		found.lost[anyMember] = true
	}
	for _, read := range reads {
		if path, of := objectPath(read.path); of {
			found.add(path, read.whole)
		}
	}
	return found
}

// objectPath is the path in the object of a path of the input, anyMember where it
// is lost. It reports whether the object is read at all.
func objectPath(read inventoryPath) (path inventoryPath, of bool) {
	if len(read) == 0 {
		return nil, true // all of the input, the object with it
	}
	member, path := read[0], read[1:]
	if member == "review" && len(path) > 0 {
		member, path = path[0], path[1:]
		if member != "object" && member != "oldObject" && member != anyMember {
			return nil, false
		}
	}
	switch {
	case member == "object":
		return path, true
	case member == anyMember:
		return inventoryPath{anyMember}, true
	case member == "review":
		return nil, true // handed on, unless all of it is read
	case slices.Contains(inputMembers, member):
		return nil, false
	default:
		return read, true
	}
}

func (r *objectReads) add(path []string, whole bool) {
	switch {
	case len(path) > 0 && path[0] == anyMember, whole && len(path) == 0:
		r.lost[anyMember] = true
	case whole && len(path) == 1:
		r.lost[path[0]] = true
	default:
		r.named.add(path, whole)
	}
}

// reach says how what is read lies to a place.
type reach int

const (
	// reachNone means that the place is not among what is read.
	reachNone reach = iota
	// reachLost means that it may be.
	reachLost
	// reachRead means that it, or something in it or around it, is read.
	reachRead
)

// reaches says how what is read of an object lies to a place in it.
func (r *objectReads) reaches(path []string) reach {
	switch {
	case r.named.reaches(path):
		return reachRead
	case len(path) == 1 && r.lost[path[0]]:
		return reachRead
	case r.lost[anyMember] || r.lost[path[0]]:
		return reachLost
	default:
		return reachNone
	}
}

func (f *fields) reaches(path []string) bool {
	for depth, step := range path {
		if f.whole {
			return true
		}
		next := f.member(step)
		if next == nil {
			// What is around it is asked for: where that is not there, neither is it.
			return f.empty() && depth >= 2
		}
		f = next
	}
	return true
}

// An ObjectRead is what a rule reads of the object.
type ObjectRead struct {
	// Path leads there, * for the elements of a list and for names that the Rego
	// does not tell.
	Path []string
	// Whole is false where all that matters is whether there is a value.
	Whole bool
}

// ObjectReads lists what the rules of a policy read of the object themselves; what
// the shared library reads for them is not among it.
func (p *Policy) ObjectReads() []ObjectRead {
	modules := p.ownModules()
	if p.rule == nil || slices.ContainsFunc(modules, func(module *ast.Module) bool { return replaces(module, ast.InputRootRef) }) {
		return nil
	}
	var found []ObjectRead
	for _, read := range readsBelow(inputRoot, modules) {
		if path, of := objectPath(read.path); of && len(path) > 0 && path[0] != anyMember {
			found = append(found, ObjectRead{path, read.whole})
		}
	}
	return found
}
