package policies

import (
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// TestWorkloadFunctionsAreTheirDefinition holds the functions that are computed
// natively to their Rego, where they answer at all.
func TestWorkloadFunctionsAreTheirDefinition(t *testing.T) {
	definition := newDefinition(t)
	patterns := []string{
		`["nvidia.com/gpu", "huawei.com/Ascend*"]`, `["*"]`, `["a*b", "", "**"]`, `[]`, `["nvidia.com/gpu*", 3, null]`,
		`[3]`, `"nvidia.com/gpu"`, `{"x": "nvidia.com/gpu"}`, `null`, `7`,
	}
	arguments := map[string][]string{
		"matches_any": {`"nvidia.com/gpu"`, `"huawei.com/Ascend910"`, `"huawei.com/Ascend"`, `"a*b"`, `"axb"`, `""`, `"*"`, `3`, `null`},
		"demand_for": {
			`{"demand": {"nvidia.com/gpu": 8, "huawei.com/Ascend910": 2, "rdma/hca": 1}}`, `{"demand": {"nvidia.com/gpu": 0.5}}`,
			`{"demand": {}}`, `{"demand": {"nvidia.com/gpu": "8"}}`, `{"demand": {"3": 1}}`, `{"demand": [1, 2]}`, `{"demand": null}`, `{}`, `null`,
		},
	}
	for name := range workloadFunctions {
		answered := 0
		for _, first := range arguments[name] {
			for _, second := range patterns {
				operands := []*ast.Term{parseTerm(t, first), parseTerm(t, second)}
				got := callWorkload(name, operands)
				if got == nil {
					continue
				}
				answered++
				if want := definition.call(t, name, operands); want == nil || want.Value.Compare(got.Value) != 0 {
					t.Errorf("%s(%s, %s) is %v natively and %v in Rego", name, first, second, got, want)
				}
			}
		}
		if answered < 10 {
			t.Errorf("%s answered %d times only", name, answered)
		}
	}
	if callWorkload("device_field", []*ast.Term{parseTerm(t, `{}`)}) != nil {
		t.Error("a function that is not native answered")
	}
}

// call evaluates a function as Rego; nil where it is undefined.
func (d *definition) call(t *testing.T, name string, operands []*ast.Term) *ast.Term {
	t.Helper()
	function := ast.NewTerm(workloadPackage.Append(ast.StringTerm(name)))
	terms := slices.Concat([]*ast.Term{function}, operands, []*ast.Term{ast.VarTerm("x")})
	results, err := topdown.NewQuery(ast.NewBody(ast.NewExpr(terms))).WithCompiler(d.compiler).
		WithStore(noData.store).WithTransaction(noData.txn).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(results) == 0 {
		return nil
	}
	return results[0]["x"]
}

func parseTerm(t *testing.T, text string) *ast.Term {
	t.Helper()
	value, err := ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return ast.NewTerm(value)
}
