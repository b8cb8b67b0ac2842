package policies_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

var (
	nodeKind   = schema.GroupVersionKind{Version: "v1", Kind: "Node"}
	podKind    = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	secretKind = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
)

// reading names kinds in spec.inventory.
func reading(kinds ...schema.GroupVersionKind) func(*v1.WorkloadPolicySpec) {
	return func(spec *v1.WorkloadPolicySpec) {
		for _, kind := range kinds {
			apiVersion, name := kind.ToAPIVersionAndKind()
			spec.Inventory = append(spec.Inventory, v1.InventoryKind{APIVersion: apiVersion, Kind: name})
		}
	}
}

// inventoryObject is an object with a spec.
func inventoryObject(namespace, name, spec string) map[string]any {
	object := map[string]any{}
	raw := fmt.Sprintf(`{"metadata":{"name":%q,"managedFields":[{"manager":"kubectl"}]},"spec":%s}`, name, spec)
	if err := json.Unmarshal([]byte(raw), &object); err != nil {
		panic(err)
	}
	if namespace != "" {
		object["metadata"].(map[string]any)["namespace"] = namespace
	}
	return object
}

// messages has the snapshot judge a TrainingJob and returns what is said.
func messages(t testing.TB, engine *policies.Engine) []string {
	t.Helper()
	verdict := engine.Snapshot().Judge(t.Context(), createRequest([]byte(`{"metadata":{"name":"train"},"spec":{"node":"a"}}`)))
	var said []string
	for _, violation := range verdict.Violations {
		said = append(said, violation.Message)
	}
	for _, e := range verdict.Errors {
		said = append(said, string(e.Reason)+": "+e.Message)
	}
	return said
}

func mustSet(t testing.TB, inventory *policies.Inventory, kind schema.GroupVersionKind, objects ...map[string]any) {
	t.Helper()
	for _, object := range objects {
		if err := inventory.Set(kind, object); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInventoryIsRead(t *testing.T) {
	nodes := []map[string]any{inventoryObject("", "a", `{"gpus":8}`), inventoryObject("", "b", `{"gpus":9007199254740993}`)}
	pods := []map[string]any{inventoryObject("x", "p", `{"node":"a"}`), inventoryObject("y", "p", `{"node":"b"}`), inventoryObject("y", "q", `{"node":"b"}`)}
	for body, want := range map[string][]string{
		`msg := sprintf("%v", [data.inventory.cluster["v1"].Node.a.spec.gpus])`:                         {"8"},
		`msg := data.inventory.cluster["v1"].Node[input.object.spec.node].metadata.name`:                {"a"},
		`msg := data.inventory.cluster.v1.Node[_].metadata.name`:                                        {"a", "b"},
		`msg := data.inventory.cluster["v1"].Node.c`:                                                    nil,
		`msg := data.inventory.cluster["v1"].Node.a.spec.none`:                                          nil,
		`msg := data.inventory.cluster["v1"].Pod.a.metadata.name`:                                       nil,
		`msg := data.inventory.namespace.y["v1"].Pod[name].metadata.name`:                               {"p", "q"},
		`data.inventory.namespace[ns]["v1"].Pod.p; msg := ns`:                                           {"x", "y"},
		`count(data.inventory.namespace[ns][_].Pod) == 2; msg := ns`:                                    {"y"},
		`msg := data.inventory.namespace[_][gv][kind].q.metadata.namespace; gv == "v1"; kind == "Pod"`:  {"y"},
		`msg := sprintf("%v %v", [object.keys(data.inventory), object.keys(data.inventory.namespace)])`: {`{"cluster", "namespace"} {"x", "y"}`},
		`msg := sprintf("%v", [object.keys(data.inventory.cluster.v1)])`:                                {`{"Node"}`},
		`not data.inventory.cluster.v1.Node.a.metadata.managedFields; msg := "none"`:                    {"none"},
		`msg := sprintf("%v", [data.inventory.cluster.v1.Node.a])`:                                      {`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "spec": {"gpus": 8}}`},
	} {
		t.Run(body, func(t *testing.T) {
			engine := engineWith(t, policies.Options{}, policy("p", "package p\nviolation contains {\"msg\": msg} if { "+body+" }", reading(nodeKind, podKind)))
			inventory := engine.Inventory()
			mustSet(t, inventory, nodeKind, nodes...)
			if err := inventory.Replace(podKind, pods); err != nil {
				t.Fatal(err)
			}
			inventory.Synced(nodeKind)
			if diff := cmp.Diff(want, messages(t, engine)); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInventoryFollowsTheCluster(t *testing.T) {
	const rego = "package p\nviolation contains sprintf(\"%v/%v\", [ns, name]) if data.inventory.namespace[ns][\"v1\"].Pod[name].spec.big"
	engine := engineWith(t, policies.Options{}, policy("p", rego, reading(podKind)))
	inventory := engine.Inventory()
	notSynced := []string{"Inventory: the objects of kind Pod (v1) that it reads are not synced yet"}
	notServed := []string{"Inventory: there are no objects of kind Pod (v1) for it to read: it is not served"}
	steps := []struct {
		change func()
		want   []string
		count  int
	}{
		{func() {}, notSynced, 0},
		{func() { inventory.Lack(podKind, "it is not served") }, notServed, 0},
		{func() { mustSet(t, inventory, nodeKind, inventoryObject("", "a", `{}`)) }, notServed, 0},
		{func() { inventory.Lack(podKind, "") }, notSynced, 0},
		{func() { inventory.Lack(podKind, "it is not served") }, notServed, 0},
		{func() { mustSet(t, inventory, podKind, inventoryObject("x", "a", `{"big":true}`)) }, notSynced, 1},
		{func() { inventory.Synced(podKind) }, []string{"x/a"}, 1},
		{func() { mustSet(t, inventory, podKind, inventoryObject("y", "b", `{"big":true}`)) }, []string{"x/a", "y/b"}, 2},
		{func() { mustSet(t, inventory, podKind, inventoryObject("x", "a", `{"big":false}`)) }, []string{"y/b"}, 2},
		{func() { inventory.Delete(podKind, "y", "c") }, []string{"y/b"}, 2},
		{func() { inventory.Delete(podKind, "y", "b") }, nil, 1},
		{func() { inventory.Delete(podKind, "x", "a") }, nil, 0},
		{func() {
			if err := inventory.Replace(podKind, []map[string]any{inventoryObject("z", "c", `{"big":1}`)}); err != nil {
				t.Fatal(err)
			}
		}, []string{"z/c"}, 1},
		{func() {
			if err := inventory.Replace(podKind, []map[string]any{{"spec": nil}}); err == nil {
				t.Error("an object without a name is taken")
			}
		}, []string{"z/c"}, 1},
		{func() { inventory.Forget(podKind) }, notSynced, 0},
	}
	for i, step := range steps {
		step.change()
		if diff := cmp.Diff(step.want, messages(t, engine)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
		if got := inventory.Count(podKind); got != step.count {
			t.Errorf("step %d: %d objects, want %d", i, got, step.count)
		}
	}
}

// TestInventoryKeepsWhatIsRead adds a policy that reads more than was kept: it
// waits until the objects are given again, and the others do not.
func TestInventoryKeepsWhatIsRead(t *testing.T) {
	small := policy("small", "package p\nviolation contains \"small\" if data.inventory.cluster[\"v1\"].Node[_].spec.a", reading(nodeKind))
	whole := policy("whole", "package p\nviolation contains sprintf(\"%v\", [data.inventory.cluster[\"v1\"].Node]) if true", reading(nodeKind))
	engine := engineWith(t, policies.Options{}, small)
	inventory := engine.Inventory()
	node := inventoryObject("", "n", `{"a":1,"b":{"c":2}}`)
	if diff := cmp.Diff([]policies.InventoryNeed{{Kind: nodeKind, Policies: []string{"small"}, Stale: true}}, inventory.Needs()); diff != "" {
		t.Errorf("needs (-want +got):\n%s", diff)
	}
	mustSet(t, inventory, nodeKind, node)
	inventory.Synced(nodeKind)
	if inventory.Needs()[0].Stale {
		t.Error("what was synced is stale")
	}
	if err := engine.Set(whole); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]policies.InventoryNeed{{Kind: nodeKind, Policies: []string{"small", "whole"}, Stale: true}}, inventory.Needs()); diff != "" {
		t.Errorf("needs (-want +got):\n%s", diff)
	}
	want := []string{"small", "Inventory: the objects of kind Node (v1) that it reads are not synced yet"}
	if diff := cmp.Diff(want, messages(t, engine)); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	if err := inventory.Replace(nodeKind, []map[string]any{node}); err != nil {
		t.Fatal(err)
	}
	want = []string{"small", `{"n": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"a": 1, "b": {"c": 2}}}}`}
	if diff := cmp.Diff(want, messages(t, engine)); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
	// With less to read, what is there serves.
	engine.Remove("whole")
	if inventory.Needs()[0].Stale {
		t.Error("the kind is stale because less of it is read")
	}
}

func TestSecretsStayOutOfTheInventory(t *testing.T) {
	engine := engineWith(t, policies.Options{}, policy("p",
		"package p\nviolation contains sprintf(\"%v\", [data.inventory]) if true", reading(secretKind)))
	err := engine.Inventory().SetJSON([]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"x","name":"s","annotations":{"last":"hunter2"}},
		"data":{"password":"aHVudGVyMg=="},"stringData":{"other":"hunter2"},"type":"Opaque"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Inventory().SetJSON([]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"x","name":"odd"},"data":"aHVudGVyMg=="}`)); err != nil {
		t.Fatal(err)
	}
	engine.Inventory().Synced(secretKind)
	said := strings.Join(messages(t, engine), "\n")
	for _, hidden := range []string{"hunter2", "aHVudGVyMg"} {
		if strings.Contains(said, hidden) {
			t.Errorf("%s can be read: %s", hidden, said)
		}
	}
	for _, shown := range []string{"password", "other", "Opaque"} {
		if !strings.Contains(said, shown) {
			t.Errorf("%s cannot be read: %s", shown, said)
		}
	}
}

// TestPoliciesSeeTheKindsTheyName: a policy that goes through all kinds must not
// see those that only others name.
func TestPoliciesSeeTheKindsTheyName(t *testing.T) {
	const every = "package p\nviolation contains kind if data.inventory.cluster[_][kind][_]\nviolation contains kind if data.inventory.namespace[_][_][kind][_]"
	engine := engineWith(t, policies.Options{},
		policy("nodes", every, reading(nodeKind)),
		policy("pods", strings.Replace(every, "package p", "package q", 1), reading(podKind)))
	mustSet(t, engine.Inventory(), nodeKind, inventoryObject("", "a", `{}`))
	mustSet(t, engine.Inventory(), podKind, inventoryObject("x", "p", `{}`))
	engine.Inventory().Synced(nodeKind)
	engine.Inventory().Synced(podKind)
	if diff := cmp.Diff([]string{"Node", "Pod"}, messages(t, engine)); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

func TestPolicyAloneSeesTheInventory(t *testing.T) {
	const rego = "package p\nviolation contains name if data.inventory.cluster.v1.Node[name].spec.big"
	engine := engineWith(t, policies.Options{}, policy("in-force", rego, reading(nodeKind)))
	mustSet(t, engine.Inventory(), nodeKind, inventoryObject("", "a", `{"big":true,"small":true}`))
	engine.Inventory().Synced(nodeKind)
	judge := func(rego string, kinds ...schema.GroupVersionKind) policies.Verdict {
		snapshot, err := engine.Alone(policy("new", rego, reading(kinds...)), policies.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return snapshot.Judge(t.Context(), createRequest(trainingJob))
	}
	if verdict := judge(rego, nodeKind); len(verdict.Violations) != 1 || verdict.Violations[0].Policy != "new" || verdict.Violations[0].Message != "a" {
		t.Errorf("got %+v", verdict)
	}
	for what, verdict := range map[string]policies.Verdict{
		"a field": judge(strings.Replace(rego, "big", "small", 1), nodeKind),
		"a kind":  judge(strings.Replace(strings.Replace(rego, "cluster", "namespace[_]", 1), "Node", "Pod", 1), podKind),
	} {
		if len(verdict.Errors) != 1 || verdict.Errors[0].Reason != policies.ReasonInventory {
			t.Errorf("%s that is not kept: got %+v", what, verdict)
		}
	}
	if names := engine.Inventory().Needs(); len(names) != 1 || names[0].Stale {
		t.Errorf("the inventory is changed by it: %v", names)
	}
}

func TestOfflineInventory(t *testing.T) {
	engine := engineWith(t, policies.Options{}, policy("p",
		"package p\nviolation contains \"few\" if count(data.inventory.cluster[\"v1\"].Node) < 2", reading(nodeKind)))
	request := createRequest([]byte(`{"spec":{}}`))
	request.Offline = true
	if verdict := engine.Snapshot().Judge(t.Context(), request); len(verdict.NotEvaluated) != 1 || verdict.NotEvaluated[0].Missing != policies.MissingInventory {
		t.Errorf("without an inventory: %+v", verdict)
	}
	mustSet(t, engine.Inventory(), nodeKind, inventoryObject("", "a", `{}`))
	engine.Inventory().Synced(nodeKind)
	if verdict := engine.Snapshot().Judge(t.Context(), request); len(verdict.Denied()) != 1 {
		t.Errorf("with an inventory: %+v", verdict)
	}
}

// TestOneRequestSeesOneInventory changes two objects that always agree in
// between, while rules compare them.
func TestOneRequestSeesOneInventory(t *testing.T) {
	const rego = `package p
a := data.inventory.cluster["v1"].Node.a.spec.n
b := data.inventory.cluster["v1"].Node.b.spec.n
violation contains sprintf("%v and %v", [a, b]) if a != b
violation contains "not all" if count([1 | some n in data.inventory.cluster["v1"].Node; n.spec.n == a]) != 2`
	engine := engineWith(t, policies.Options{}, policy("p", rego, reading(nodeKind)), policy("q", rego, reading(nodeKind)))
	inventory := engine.Inventory()
	both := func(n int) []map[string]any {
		spec := fmt.Sprintf(`{"n":%d}`, n)
		return []map[string]any{inventoryObject("", "a", spec), inventoryObject("", "b", spec)}
	}
	if err := inventory.Replace(nodeKind, both(0)); err != nil {
		t.Fatal(err)
	}
	var judges sync.WaitGroup
	for range 4 {
		judges.Go(func() {
			for range 200 {
				if said := messages(t, engine); said != nil {
					t.Errorf("a mixed state: %q", said)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { judges.Wait(); close(done) }()
	for n := 1; ; n++ {
		select {
		case <-done:
			return
		default:
			if err := inventory.Replace(nodeKind, both(n)); err != nil {
				t.Error(err)
			}
		}
	}
}
