package policies

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

var patternArguments = []string{
	`["nvidia.com/gpu", "huawei.com/Ascend*"]`, `["*"]`, `["a*b", "", "**"]`, `[]`, `["nvidia.com/gpu*", 3, null]`,
	`[3]`, `"nvidia.com/gpu"`, `{"x": "nvidia.com/gpu"}`, `null`, `7`,
}

var nodeArguments = []string{
	`{"a": {"metadata": {"labels": {"product": "L4", "rack": "1"}}, "status": {"allocatable": {"nvidia.com/gpu": "4", "rdma/hca": "1k"}}},
	  "b": {"metadata": {"labels": {"product": "H100", "rack": "1"}}, "status": {"allocatable": {"nvidia.com/gpu": "8", "cpu": "7910m"}}},
	  "c": {"metadata": {"labels": {"rack": "2"}}, "status": {"allocatable": {"nvidia.com/gpu": 9, "nvidia.com/mig-1g.5gb": "1"}}},
	  "d": {"metadata": {"labels": null}, "status": {"allocatable": {"nvidia.com/gpu": "12"}}}, "e": {"metadata": {"labels": {"rack": "3"}}}, "f": {}}`,
	`{"a": {"metadata": {}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}}, "b": {"status": {"allocatable": {"nvidia.com/gpu": "64"}}}}`,
	`{"a": {"metadata": {"labels": {"rack": 7, "block": "1"}}, "status": {"allocatable": {"nvidia.com/gpu": "eight", "rdma/hca": "500m"}}}}`,
	`{"a": {"metadata": {"labels": {"rack": "1"}}, "status": {"allocatable": ["nvidia.com/gpu"]}}, "b": 3, "c": null}`,
	`{"a": {"metadata": {"labels": {"rack": "1"}}, "status": {"allocatable": {"nvidia.com/gpu": "-4"}}}}`,
	`{}`, `[{"metadata": {}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}}]`, `null`, `"x"`,
}

// functionArguments are what each native function is tried with: a list for
// each of its arguments, combined in every way.
var functionArguments = map[string][][]string{
	"matches_any": {
		{`"nvidia.com/gpu"`, `"huawei.com/Ascend910"`, `"huawei.com/Ascend"`, `"a*b"`, `"axb"`, `""`, `"*"`, `3`, `null`},
		patternArguments,
	},
	"demand_for": {{
		`{"demand": {"nvidia.com/gpu": 8, "huawei.com/Ascend910": 2, "rdma/hca": 1}}`, `{"demand": {"nvidia.com/gpu": 0.5}}`,
		`{"demand": {}}`, `{"demand": {"nvidia.com/gpu": "8"}}`, `{"demand": {"3": 1}}`, `{"demand": [1, 2]}`, `{"demand": null}`, `{}`, `null`,
	}, patternArguments},
	"quantity":     {{`8`, `"8"`, `"8.0"`, `"1k"`, `"500m"`, `"1e3"`, `"9007199254740993"`, `"eight"`, `""`, `null`, `[]`, `0.5`}},
	"most_per_pod": {patternArguments},
	"total_of":     {patternArguments},
	"wishes":       {patternArguments},
	"met": {{
		`{"name": "nvidia.com/gpu", "needs": 8, "selector": {}}`, `{"name": "nvidia.com/gpu", "needs": 8, "selector": {"product": "L4"}}`,
		`{"name": "nvidia.com/gpu", "needs": 4, "selector": {"product": "L4"}}`, `{"name": "nvidia.com/gpu", "needs": 9, "selector": {"product": null}}`,
		`{"name": "rdma/hca", "needs": "x", "selector": {}}`, `{"name": "rdma/hca", "needs": 0.5, "selector": {}}`, `{"name": 3, "needs": 1, "selector": {}}`, `{}`, `null`,
	}, nodeArguments},
	"held":         {{`"rack"`, `"block"`, `3`}, {`1`, `4`, `5`, `0`, `0.5`, `"x"`}, {`4`, `12`, `13`, `-1`, `10.5`, `"x"`}, {`["nvidia.com/*"]`, `["*"]`, `[]`, `[3]`, `"x"`}, nodeArguments},
	"names_like":   {patternArguments},
	"names_beyond": {patternArguments},
	"keys_like":    {{`{"nvidia.com/gpu": 1, "a*b": 2, "": 3}`, `{}`, `["*"]`, `null`, `"x"`}, patternArguments},
	"cramped":      {{`["*"]`, `["nvidia.com/gpu"]`, `[]`, `"x"`}, {`2`, `1`, `0`, `"2"`, `null`}},
	"untolerated": {{
		`[{"resources": ["*"], "key": "nvidia.com/gpu", "effect": "NoSchedule"}]`,
		`[{"resources": ["*"], "key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}, {"resources": ["amd.com/*"], "key": "a", "effect": "NoExecute"}]`,
		`[{"resources": ["*"], "key": "nvidia.com/gpu"}]`, `[{"key": "a", "effect": "b"}]`, `[3]`, `[]`, `{}`, `null`,
	}},
	"mispinned": {{
		`[{"resources": ["*"], "labels": ["nvidia.com/*"]}]`,
		`[{"resources": ["nvidia.com/gpu"], "labels": ["*"], "values": ["false", "NVIDIA-L4", 3]}, {"resources": ["*"], "labels": ["nvidia.com/gpu.count"], "values": []}]`,
		`[{"resources": ["*"], "labels": ["*"], "values": 3}]`, `[{"resources": ["*"], "labels": [null]}]`, `[{}]`, `[]`, `null`,
	}},
	"roles_having":       {{`["spec", "topology"]`, `["pod", "hostNetwork"]`, `["pod", "containers"]`, `["name"]`, `["name", "x"]`, `["path"]`, `[]`, `["spec", 0]`, `"spec"`}},
	"roles_where":        {{`["spec", "restartPolicy"]`, `["pod", "restartPolicy"]`, `["name"]`, `["replicas"]`, `[3]`}, {`["Always", "Worker", 1]`, `[null]`, `[]`, `"Always"`}},
	"containers_having":  {{`["resources", "claims"]`, `["resources", "limits", "nvidia.com/gpu"]`, `["env"]`, `[]`, `null`}},
	"containers_setting": {{`["NVIDIA_VISIBLE_DEVICES"]`, `["A", "TOKEN"]`, `[]`, `[null]`, `"A"`}},
	"containers_saying":  {{`["torchrun", "-np"]`, `[""]`, `[]`, `[3]`, `"x"`}},
	"runs_without":       {{`"backoffLimit"`, `"ttlSecondsAfterFinished"`, `""`, `3`}},
	"runs_beyond":        {{`"backoffLimit"`, `"activeDeadlineSeconds"`, `3`}, {`2`, `86400.5`, `"x"`, `null`, `{}`}},
}

// TestWorkloadFunctionsAreTheirDefinition holds the functions that are computed
// natively to their Rego, where they answer at all: on the objects of all
// cases, some of them broken.
func TestWorkloadFunctionsAreTheirDefinition(t *testing.T) {
	definition, objects := newDefinition(t), caseObjects(t)
	random := rand.New(rand.NewPCG(5, 6))
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	for name, function := range workloadFunctions {
		lists := functionArguments[name]
		if len(lists) != function.arity {
			t.Fatalf("%s takes %d arguments and is tried with %d", name, function.arity, len(lists))
		}
		answered := 0
		for _, arguments := range combinations(lists) {
			var operands []*ast.Term
			for _, argument := range arguments {
				operands = append(operands, parseTerm(t, argument))
			}
			for range rounds {
				object := objects[random.IntN(len(objects))]
				for range random.IntN(4) {
					object = breakAt(random, object)
				}
				got := newWorkload(ast.NewTerm(object)).call(name, operands)
				if got == nil {
					continue
				}
				answered++
				want := definition.call(t, name, operands, object)
				if want == nil || want.Value.Compare(got.Value) != 0 {
					t.Fatalf("%s(%s) is %v natively and %v in Rego, for %v", name, arguments, got, want, object)
				}
			}
		}
		if answered < 10 {
			t.Errorf("%s answered %d times only", name, answered)
		}
	}
	if newWorkload(nil).call("device_field", []*ast.Term{parseTerm(t, `{}`)}) != nil {
		t.Error("a function that is not native answered")
	}
}

func combinations(lists [][]string) [][]string {
	all := [][]string{nil}
	for _, list := range lists {
		var longer [][]string
		for _, some := range all {
			for _, one := range list {
				longer = append(longer, append(slices.Clone(some), one))
			}
		}
		all = longer
	}
	return all
}

// call evaluates a function as Rego; nil where it is undefined.
func (d *definition) call(t *testing.T, name string, operands []*ast.Term, object ast.Value) *ast.Term {
	t.Helper()
	function := ast.NewTerm(workloadPackage.Append(ast.StringTerm(name)))
	terms := slices.Concat([]*ast.Term{function}, operands, []*ast.Term{ast.VarTerm("x")})
	in := &input{object: ast.NewTerm(object)}
	results, err := topdown.NewQuery(ast.NewBody(ast.NewExpr(terms))).WithCompiler(d.compiler).
		WithStore(noData.store).WithTransaction(noData.txn).WithInput(in.forPolicy(reads{}, nil)).Run(t.Context())
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
