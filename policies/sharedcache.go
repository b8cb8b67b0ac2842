package policies

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// sharedCache is the cache of rule values of one policy, in which the values
// of the shared library are found as if the policy had computed them, and the
// results of its functions as if the policy had called them before.
//
// Each policy compiles the library along, so that its Rego means the same
// here, in its unit tests and under the opa command; the cache only spares it
// the work. Where a rule changes the input (with), Rego opens a new frame, in
// which the cache is empty and the library's text is evaluated.
type sharedCache struct {
	topdown.VirtualCache
	workload *workload
	frames   int
}

// Push opens a frame.
func (c *sharedCache) Push() {
	c.frames++
	c.VirtualCache.Push()
}

// Pop closes the last frame.
func (c *sharedCache) Pop() {
	c.frames--
	c.VirtualCache.Pop()
}

// Get returns the value of a rule if it is known.
func (c *sharedCache) Get(ref ast.Ref) (*ast.Term, bool) {
	if c.frames == 0 {
		if value := c.native(ref); value != nil {
			return value, false
		}
	}
	return c.VirtualCache.Get(ref)
}

// native returns what is computed without Rego, nil for all the rest. Rego
// asks for the result of a function by the function's reference, as one term,
// and the arguments.
func (c *sharedCache) native(ref ast.Ref) *ast.Term {
	if function, ok := ref[0].Value.(ast.Ref); ok {
		if name, ok := workloadRule(function); ok {
			return c.workload.call(name, ref[1:])
		}
		return nil
	}
	if name, ok := workloadRule(ref); ok {
		return c.workload.value(name)
	}
	return nil
}

// workloadRule returns the name of a rule of data.penstock.workload.
func workloadRule(ref ast.Ref) (string, bool) {
	if len(ref) != len(workloadPackage)+1 {
		return "", false
	}
	for i := len(workloadPackage) - 1; i > 0; i-- {
		if ref[i].Value != workloadPackage[i].Value {
			return "", false
		}
	}
	name, ok := ref[len(ref)-1].Value.(ast.String)
	return string(name), ok
}

var workloadPackage = ast.MustParseRef("data.penstock.workload")
