package regotest

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/penstock-dev/penstock/policies"
)

// Coverage sees which lines of a policy are evaluated: by the tests of a suite,
// and by an engine that has it as Options.Tracer. Other policies are not to be
// evaluated by the same engine: theirs are files of the same names.
type Coverage struct{ cover *cover.Cover }

var _ topdown.QueryTracer = (*Coverage)(nil)

// NewCoverage returns a coverage that has seen nothing.
func NewCoverage() *Coverage { return &Coverage{cover: cover.New()} }

// Enabled is part of topdown.QueryTracer.
func (c *Coverage) Enabled() bool { return true }

// Config is part of topdown.QueryTracer.
func (c *Coverage) Config() topdown.TraceConfig { return c.cover.Config() }

// TraceEvent is part of topdown.QueryTracer.
func (c *Coverage) TraceEvent(event topdown.Event) { c.cover.TraceEvent(event) }

// Lines are those of one module of a policy that say something.
type Lines struct {
	// Module is its name among the policy's own.
	Module string
	// Count is how many there are, NotCovered which were not evaluated, or in
	// part only, from 1.
	Count      int
	NotCovered []int
}

// Of returns the lines of a policy's own modules, in their order.
func (c *Coverage) Of(modules *policies.Modules) []Lines {
	own := map[string]*ast.Module{}
	for _, name := range modules.Own {
		own[name] = modules.ByName[name]
	}
	report := c.cover.Report(own)
	all := make([]Lines, len(modules.Own))
	for i, name := range modules.Own {
		all[i] = Lines{Module: name}
		file := report.Files[name]
		if file == nil {
			continue
		}
		said := map[int]bool{}
		for _, one := range file.Covered {
			addRows(said, one)
		}
		missed := map[int]bool{}
		for _, one := range file.NotCovered {
			addRows(said, one)
			addRows(missed, one)
		}
		all[i].Count = len(said)
		for row := range missed {
			all[i].NotCovered = append(all[i].NotCovered, row)
		}
		slices.Sort(all[i].NotCovered)
	}
	return all
}

func addRows(rows map[int]bool, of cover.Range) {
	for row := of.Start.Row; row <= of.End.Row; row++ {
		rows[row] = true
	}
}
