package policies

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies/library"
)

func TestGuard(t *testing.T) {
	many := "[" + strings.Repeat("1,", guardFuel) + "1]"
	object := `{"kind": "Pod", "apiVersion": "v1", "metadata": {"labels": {"a": "b"}}, "spec": {"n": 3, "off": false, "list": [1], "none": [], "many": ` + many + `,
		"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 2}}}]}}`
	const parameters = `{"most": 2, "names": ["nvidia.com/*"], "by": {"Pod": "x"}}`
	tests := map[string]struct {
		body string
		want bool
	}{
		"a value that is there":                  {`input.object.spec.n`, true},
		"a value that is not there":              {`input.object.spec.m`, false},
		"a value that is false":                  {`input.object.spec.off`, false},
		"not a value that is there":              {`not input.object.spec.n`, false},
		"not a value that is false":              {`not input.object.spec.off`, true},
		"an equal constant":                      {`input.object.kind == "Pod"`, true},
		"another constant":                       {`input.object.kind == "Job"`, false},
		"a comparison that holds":                {`input.object.spec.n > input.parameters.most`, true},
		"a comparison that fails":                {`input.object.spec.n < input.parameters.most`, false},
		"not a comparison that holds":            {`not input.object.spec.n > 2`, false},
		"a parameter that is not there":          {`input.object.spec.n > input.parameters.least`, false},
		"a member that is looked up":             {`input.parameters.by[input.object.kind]`, true},
		"a member that is looked up in vain":     {`input.parameters.by[input.object.apiVersion]`, false},
		"an element of a list":                   {`some x in input.object.spec.list`, true},
		"an element of an empty list":            {`some x in input.object.spec.none`, false},
		"an element of nothing":                  {`some x in input.object.spec.nothing`, false},
		"an element of a text":                   {`some x in input.object.kind`, false},
		"a count":                                {`count(input.object.spec.none) > 0`, false},
		"membership":                             {`"x" in input.object.spec.list`, false},
		"what the library counts":                {`workload.total_of(input.parameters.names) > 1`, true},
		"what the library counts, and is less":   {`workload.total_of(input.parameters.names) + workload.claims_total > 2`, false},
		"what the library selects":               {`some name in workload.names_like(input.parameters.names)`, true},
		"what the library selects, and is none":  {`some name in workload.names_beyond(input.parameters.names)`, false},
		"an empty value of the library":          {`some device in workload.unsound_devices`, false},
		"a rule of the policy itself":            {`helper`, true},
		"a builtin that depends on more":         {`time.now_ns() < 0`, true},
		"a fault after what is not known":        {"helper\ninput.object.kind == \"Job\"", false},
		"a value of a variable that is bound":    {"x := input.object.spec\nx.n > 3", false},
		"an element that holds":                  {"some x in input.object.spec.containers\nx.name == \"c\"", true},
		"no element that holds":                  {"some x in input.object.spec.containers\nx.name == \"d\"", false},
		"no pair of elements that holds":         {"some x in input.object.spec.containers\nsome y in input.object.spec.list\nx.name == y", false},
		"a key and its element":                  {"some i, x in input.object.spec.list\ni == 0\nx == 1", true},
		"a key without its element":              {"some i, x in input.object.spec.list\ni == 1", false},
		"a member of an object":                  {"some key, x in input.object.metadata.labels\nkey == \"b\"\nx == \"a\"", false},
		"an element of a constant":               {"some x in [\"n\", \"off\"]\ninput.object.spec[x] == 4", false},
		"an element that Rego decides on":        {"some x in input.object.spec.containers\nnamed(x)\nx.name == \"c\"", true},
		"more elements than are tried":           {"some x in numbers.range(1, 3)\nsome y in input.object.spec.many\ny == 0", true},
		"objects of the inventory":               {"some x in data.inventory.cluster.v1.Node\nx.gpus > 7", true},
		"no objects of the inventory":            {"some x in data.inventory.cluster.v1.Node\nx.gpus > 8", false},
		"a kind that the inventory lacks":        {"some x in data.inventory.cluster.v1.Namespace", false},
		"an index as a text":                     {`data.inventory.cluster.v1.Node.a.list["1"] == 5`, true},
		"a name as a number":                     {`data.inventory.cluster.v1.Node[1].gpus == 4`, true},
		"a rule that stands for a kind":          {"some x in nodes\nx.gpus > 8", false},
		"a rule that stands for a part":          {"some x in part\nx > 8", true},
		"another input":                          {`input.object.kind == "Job" with input as {"object": {"kind": "Job"}}`, true},
		"the whole object":                       {`input.object == 3`, false},
		"the user, of whom it knows nothing":     {`input.user.username == "x"`, true},
		"not a part of the shared library's Go":  {`workload.pod_places.Job`, true},
		"an undefined result of the library":     {`workload.keys_like(input.object.spec.nothing, ["*"])`, false},
		"a function that the Rego has to decide": {`count(workload.keys_like([], ["*"])) > 3`, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, faults := compileRule("package x\nimport data.penstock.workload\nhelper := 1\nnamed(x) if x.name\ndefault nodes := {}\nnodes := data.inventory.cluster.v1.Node\npart := data.inventory.cluster.v1.Node.a\nviolation contains \"x\" if {\n" + tc.body + "\n}")
			if faults != nil {
				t.Fatal(faults)
			}
			run := &guardRun{object: parseTerm(t, object), parameters: parseTerm(t, parameters)}
			run.workload = newWorkload(run.object)
			run.inventory = nodesView(t, `{"a": {"gpus": 8, "list": [4, 5]}, "1": {"gpus": 4}}`)
			if got := r.queries[0].guard.mayHold(run); got != tc.want {
				t.Errorf("the guard says %t, want %t", got, tc.want)
			}
		})
	}
	for name, text := range map[string]string{
		"a default":       "default violation := []\nviolation := [1] if input.object.none",
		"an alternative":  "violation := [1] if { input.object.none } else := [2]",
		"a complete rule": "deny if input.object.none",
	} {
		r, faults := compileRule("package x\n" + text)
		if faults != nil {
			t.Fatal(name, faults)
		}
		if r.queries[0].guard != nil {
			t.Errorf("%s is guarded", name)
		}
	}
}

// TestGuardsChangeNoVerdict evaluates the library with guards and without, on
// the objects of all cases and on broken ones.
func TestGuardsChangeNoVerdict(t *testing.T) {
	loaded, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	objects := caseObjects(t)
	inventories := []*inventoryView{nil}
	for _, nodes := range nodeArguments[:5] {
		inventories = append(inventories, nodesView(t, nodes))
	}
	random := rand.New(rand.NewPCG(7, 8))
	rounds := 200
	if testing.Short() {
		rounds = 30
	}
	for _, policy := range loaded {
		compiled, err := Compile(policy)
		if err != nil {
			t.Fatal(err)
		}
		unguarded := &rule{compiler: compiled.rule.compiler, reads: compiled.rule.reads, shared: compiled.rule.shared}
		unguarded.queries = append([]query(nil), compiled.rule.queries...)
		for i := range unguarded.queries {
			unguarded.queries[i].guard = nil
		}
		for range rounds {
			object := objects[random.IntN(len(objects))]
			for range random.IntN(3) {
				object = breakAt(random, object)
			}
			nodes := inventories[random.IntN(len(inventories))]
			with, without := findingsFor(t, compiled.rule, policy, object, nodes), findingsFor(t, unguarded, policy, object, nodes)
			if diff := cmp.Diff(without, with, cmp.AllowUnexported(finding{})); diff != "" {
				t.Fatalf("%s of %v (-without guard +with):\n%s", policy.Name, object, diff)
			}
		}
	}
}

// nodesView is an inventory of nodes, by name.
func nodesView(t *testing.T, nodes string) *inventoryView {
	t.Helper()
	var objects ordered[*ast.Term]
	parseTerm(t, nodes).Value.(ast.Object).Foreach(func(name, node *ast.Term) { objects = objects.set(textOf(name), node) })
	kind := &kindState{kind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, synced: true}
	if objects.len > 0 {
		kind.cluster = &leaf{objects: objects}
	}
	return &inventoryView{Store: noData.store, kinds: []*kindState{kind}, last: &atomic.Pointer[namespacesTerm]{}}
}

func findingsFor(t *testing.T, r *rule, policy *v1.WorkloadPolicy, object ast.Value, nodes *inventoryView) []finding {
	t.Helper()
	raw := policy.Spec.Parameters
	if raw == nil {
		raw = &runtime.RawExtension{Raw: []byte("{}")}
	}
	e := &evaluation{in: &input{object: ast.NewTerm(object)}}
	asked := trial{policy: &Policy{rule: r}, parameters: parseTerm(t, string(raw.Raw)), inventory: nodes}
	if !e.mayFind(asked) {
		return nil
	}
	found, err := e.run(t.Context(), asked, topdown.NewCancel())
	if err != nil {
		t.Fatalf("%s of %v: %v", policy.Name, object, err)
	}
	return found.findings
}
