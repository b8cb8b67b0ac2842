package policies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// resultVar is the variable of a query that holds the value of its rule.
const resultVar = "violations"

// finding is one element of a policy's result, before the policy's action is
// applied.
type finding struct {
	message string
	// said is the message in all its length.
	said  string
	field string
	fix   string
	// details is what Gatekeeper's rules tell beside the message; nil for nothing.
	details ast.Value
	warn    bool
	// explanation is nil unless one was asked for.
	explanation *Explanation
}

// evaluation runs the rules of policies on one input. It is for one goroutine.
type evaluation struct {
	in  *input
	now time.Time
	// workload are the values of the shared library; nil until a policy needs them.
	workload *workload
	guards   guardRun
	// tracers see the evaluation of rules.
	tracers []topdown.QueryTracer
}

// judge evaluates the rule of one trial, as far as that can be without what the
// trial lacks.
func (e *evaluation) judge(ctx context.Context, t trial, cancel topdown.Cancel) (decision, error) {
	if t.without() != 0 {
		return e.decide(ctx, t, cancel)
	}
	return e.run(ctx, t, cancel)
}

// run evaluates the rule of one trial. It stops with an error when cancel is cancelled.
func (e *evaluation) run(ctx context.Context, t trial, cancel topdown.Cancel) (decision, error) {
	r := t.policy.rule
	document, cache := e.prepare(t)
	var d decision
	for i := range r.queries {
		result, err := e.query(ctx, t, &r.queries[i], document, cache, cancel, e.tracers...)
		if err != nil {
			return decision{}, err
		}
		if err := d.collect(&r.queries[i], result); err != nil {
			return decision{}, err
		}
	}
	return d, nil
}

// prepare gives what a rule is evaluated with: its input, and a cache that knows
// the values of the shared library.
func (e *evaluation) prepare(t trial) (document *ast.Term, cache topdown.VirtualCache) {
	r := t.policy.rule
	cache = topdown.NewVirtualCache()
	if r.shared {
		if e.workload == nil {
			e.workload = newWorkload(e.in.object)
		}
		cache = &sharedCache{VirtualCache: cache, workload: e.workload}
	}
	return e.in.forPolicy(r.reads, t.parameters), cache
}

// mayFind reports whether a rule has to be run at all.
func (e *evaluation) mayFind(t trial) bool {
	r := t.policy.rule
	if r.shared && e.workload == nil {
		e.workload = newWorkload(e.in.object)
	}
	e.guards.object, e.guards.parameters, e.guards.workload, e.guards.inventory = e.in.object, t.parameters, e.workload, t.inventory
	for i := range r.queries {
		if r.queries[i].guard.mayHold(&e.guards) {
			return true
		}
	}
	return false
}

func (e *evaluation) query(ctx context.Context, t trial, q *query, document *ast.Term, cache topdown.VirtualCache, cancel topdown.Cancel, tracers ...topdown.QueryTracer) (*ast.Term, error) {
	prepared := e.topdown(t, q.body, document, cache, cancel).WithQueryCompiler(q.compiler)
	for _, tracer := range tracers {
		prepared = prepared.WithQueryTracer(tracer)
	}
	var result *ast.Term
	err := prepared.Iter(ctx, func(found topdown.QueryResult) error {
		result = found[resultVar]
		return nil
	})
	return result, err
}

func (e *evaluation) topdown(t trial, body ast.Body, document *ast.Term, cache topdown.VirtualCache, cancel topdown.Cancel) *topdown.Query {
	store := noData.store
	if t.inventory != nil {
		store = t.inventory
	}
	return topdown.NewQuery(body).
		WithCompiler(t.policy.rule.compiler).
		WithStore(store).
		WithTransaction(noData.txn).
		WithInput(document).
		WithTime(e.now).
		WithVirtualCache(cache).
		WithMetrics(metrics.NoOp()).
		WithCancel(cancel)
}

// noData is the empty data document. Its one read transaction is shared by all
// evaluations: nothing is ever written.
var noData = func() (d struct {
	store storage.Store
	txn   storage.Transaction
}) {
	d.store = inmem.NewWithOpts(inmem.OptReturnASTValuesOnRead(true))
	txn, err := d.store.NewTransaction(context.Background())
	if err != nil {
		panic(err) // an in-memory store without limits has no reason to refuse
	}
	d.txn = txn
	return d
}()

// Bounds on what one policy says to one request; a message past them tells
// nobody more. More is collected than said: an update is compared with what was
// there before by all of it.
const (
	maxFindings      = 100
	maxCollected     = 1000
	maxMessageLength = 2048
	maxFieldLength   = 1024
)

var errNotASet = errors.New("is not a set of violations")

// told are those of the findings that are said, those that deny before others.
func told(findings []finding) []finding {
	if len(findings) <= maxFindings {
		return findings
	}
	kept := make([]finding, 0, maxFindings)
	for _, warn := range []bool{false, true} {
		for _, one := range findings {
			if one.warn == warn && len(kept) < maxFindings {
				kept = append(kept, one)
			}
		}
	}
	return kept
}

// collect adds what the value of a rule says. Undefined and false mean no violation;
// true, which conftest knows, means one without words.
func (d *decision) collect(q *query, result *ast.Term) error {
	if result == nil {
		return nil
	}
	collected := 0
	add := func(elem *ast.Term) error {
		if collected++; collected > maxCollected {
			d.more = true
			return nil
		}
		one, err := findingOf(q.name, elem)
		if err != nil {
			return fmt.Errorf("rule %s: %w", q.name, err)
		}
		one.warn = verdictOf(q.name) == "warn"
		d.findings = append(d.findings, one)
		return nil
	}
	switch value := result.Value.(type) {
	case ast.Set:
		return value.Iter(add)
	case *ast.Array:
		return value.Iter(add)
	case ast.Boolean:
		if value {
			message := fmt.Sprintf("rule %s holds", q.name)
			d.findings = append(d.findings, finding{message: message, said: message, warn: verdictOf(q.name) == "warn"})
		}
		return nil
	case ast.String:
		return add(result)
	}
	return fmt.Errorf("rule %s %w: it is of type %s", q.name, errNotASet, ast.ValueName(result.Value))
}

// findingOf reads one element of a rule: a message, or an object with msg, field
// and fix. What is found counts, however it is put: an element without a message
// says so, and a field or fix that is no text is left out.
func findingOf(rule string, elem *ast.Term) (finding, error) {
	switch value := elem.Value.(type) {
	case ast.String:
		return finding{message: truncate(Printable(string(value)), maxMessageLength), said: string(value)}, nil
	case ast.Object:
		var one finding
		var wrong string
		text := func(name string, limit int) string {
			term := value.Get(stringTerm(name))
			if term == nil {
				return ""
			}
			if text, ok := term.Value.(ast.String); ok {
				return truncate(Printable(string(text)), limit)
			}
			wrong = fmt.Sprintf("rule %s gives %s of type %s, and a string is expected", rule, name, ast.ValueName(term.Value))
			return ""
		}
		one.field, one.fix = text("field", maxFieldLength), text("fix", maxMessageLength)
		one.message = text("msg", maxMessageLength)
		if msg, ok := valueOf(value.Get(stringTerm("msg"))).(ast.String); ok {
			one.said = string(msg)
		}
		one.details = valueOf(value.Get(stringTerm("details")))
		switch {
		case one.message == "" && wrong != "":
			one.message = wrong
		case one.message == "":
			one.message = fmt.Sprintf("rule %s gives an object without msg, which is to say what is wrong", rule)
		case wrong != "":
			one.message = truncate(fmt.Sprintf("%s (%s)", one.message, wrong), maxMessageLength)
		}
		one.said = cmp.Or(one.said, one.message)
		return one, nil
	}
	return finding{}, fmt.Errorf("an element is of type %s, neither a string nor an object with msg", ast.ValueName(elem.Value))
}

func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && text[limit]&0xc0 == 0x80 { // do not cut a rune in two
		limit--
	}
	return text[:limit] + "…"
}
