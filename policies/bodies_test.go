package policies

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/penstock-dev/penstock/policies/library"
)

// TestBodiesFindWhatTheirRulesFind evaluates the bodies of the library's rules one
// by one, on objects of its cases, and their rules: both find the same.
func TestBodiesFindWhatTheirRulesFind(t *testing.T) {
	all, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	objects, random, found := caseObjects(t), rand.New(rand.NewPCG(3, 4)), 0
	for _, policy := range all {
		compiled, err := Compile(policy)
		if err != nil {
			t.Fatal(err)
		}
		bodies := compiled.rule.bodiesOf()
		one := trial{policy: compiled}
		_, one.parameters = compiled.settings.in(nil)
		for range 150 {
			object := objects[random.IntN(len(objects))]
			e := &evaluation{in: &input{object: ast.NewTerm(object)}, now: time.Unix(0, 0)}
			document, cache := e.prepare(one)
			run := &bodyRun{evaluate: func(body ast.Body, each func(topdown.QueryResult) error) error {
				return e.topdown(one, body, document, cache, topdown.NewCancel()).Iter(t.Context(), each)
			}}
			for i := range compiled.rule.queries {
				q := &compiled.rule.queries[i]
				want, err := e.query(t.Context(), one, q, document, cache, topdown.NewCancel())
				if err != nil {
					t.Fatalf("%s of %v: %v", policy.Name, object, err)
				}
				got := ast.NewSet()
				for j := range bodies[q.name] {
					body := &bodies[q.name][j]
					if !body.apart || body.key == nil {
						t.Fatalf("%s: a body of %s adds to no set", policy.Name, q.name)
					}
					if err := run.add(body, got); err != nil {
						t.Fatalf("%s of %v: %v", policy.Name, object, err)
					}
				}
				if found += got.Len(); want.Value.Compare(got) != 0 {
					t.Errorf("%s of %v: the bodies find %v, the rule %v", policy.Name, object, got, want)
				}
			}
		}
	}
	if found < 200 {
		t.Errorf("no more than %d were found: too little was tried", found)
	}
}
