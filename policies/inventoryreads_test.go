package policies

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// String lists the fields, one path each: "spec.a", "spec.b?" for what is only
// asked whether it is there, "**" for all.
func (f *fields) String() string {
	var paths []string
	var walk func(f *fields, path string)
	walk = func(f *fields, path string) {
		switch {
		case f.whole:
			paths = append(paths, path+"**")
		case len(f.members) == 0 && path != "":
			paths = append(paths, strings.TrimSuffix(path, ".")+"?")
		}
		for name, member := range f.members {
			walk(member, path+name+".")
		}
	}
	walk(f, "")
	slices.Sort(paths)
	return strings.Join(paths, " ")
}

func TestInventoryReads(t *testing.T) {
	for body, want := range map[string]string{
		// Through references.
		`data.inventory.cluster["v1"].Node[_].spec.unschedulable`:                            "spec.unschedulable.**",
		`data.inventory.cluster["v1"].Node[input.name].status.allocatable["nvidia.com/gpu"]`: "status.allocatable.nvidia.com/gpu.**",
		`data.inventory.cluster["v1"].Node[_].spec.taints[_].key == "a"`:                     "spec.taints.*.key.**",
		`data.inventory.cluster["v1"].Node[_].spec.taints[0].key == "a"`:                     "spec.taints.*.key.**",
		`data.inventory.cluster["v1"].Node[_].metadata.labels[k] == "a"; k != "b"`:           "metadata.labels.*.**",
		`data.inventory.cluster["v1"].Node.a`:                                                "**",
		`data.inventory.cluster["v1"].Node`:                                                  "**",
		`data.inventory.cluster[_][_][_].spec.a`:                                             "spec.a.**",
		`data.inventory[_]["v1"].Node[_].spec.a`:                                             "**",
		`data.inventory`:                                                                     "**",
		`walk(data.inventory, [_, 1])`:                                                       "**",
		// Through variables.
		`node := data.inventory.cluster["v1"].Node[_]; node.spec.a == node.spec.b`:                         "spec.a.** spec.b.**",
		`some node in data.inventory.cluster["v1"].Node; not node.spec.a`:                                  "spec.a.**",
		`some name, node in data.inventory.cluster["v1"].Node; node.spec.a == name`:                        "spec.a.**",
		`every node in data.inventory.cluster["v1"].Node { node.spec.a }`:                                  "spec.a.**",
		`nodes := data.inventory.cluster["v1"]; nodes.Node[_].spec.a`:                                      "spec.a.**",
		`a := data.inventory.cluster["v1"].Node[_]; b := data.inventory.cluster["v1"].Node[_]; a == b`:     "**",
		`a = data.inventory.cluster["v1"].Node[_].spec.a; a = data.inventory.cluster["v1"].Node[_].spec.b`: "spec.a.** spec.b.**",
		`node := data.inventory.cluster["v1"].Node[_]; spec := node.spec; spec.a`:                          "spec.a.**",
		`node := data.inventory.cluster["v1"].Node[_]; [1 | node.spec.a] == [1]`:                           "spec.a.**",
		`count({n | data.inventory.cluster["v1"].Node[n].spec.a}) > 1`:                                     "spec.a.**",
		`count(data.inventory.cluster["v1"].Node) > 1`:                                                     "",
		`node := data.inventory.cluster["v1"].Node[_]; walk(node, [_, 1])`:                                 "**",
		`node := data.inventory.cluster["v1"].Node[_]; node == input.object`:                               "**",
		`node := data.inventory.cluster["v1"].Node[_]; [node] == input.object`:                             "**",
		`node := data.inventory.cluster["v1"].Node[_]; a := node.spec.a; b := [1 | a]; count(b) == 1`:      "spec.a.**",
		`node := data.inventory.cluster["v1"].Node[_]; a := node.spec.a`:                                   "spec.a?",
		// Through functions and rules.
		`node := data.inventory.cluster["v1"].Node[_]; tainted(node, "a")`:   "spec.taints.*.key.**",
		`tainted(data.inventory.cluster["v1"].Node[_], "a")`:                 "spec.taints.*.key.**",
		`node := data.inventory.cluster["v1"].Node[_]; otherwise(node) == 2`: "spec.x.** spec.y.**",
		`nodes[_].spec.a`:                 "spec.a.**",
		`some node in nodes; node.spec.a`: "spec.a.**",
		`x := q; x.nodes == input.x`:      "**",
		`node := data.inventory.cluster["v1"].Node[_]; object.get(node, "spec", {}).a`:            "spec.a.**",
		`node := data.inventory.cluster["v1"].Node[_]; object.get(node, ["spec", "a"], 1) == 1`:   "spec.a.**",
		`node := data.inventory.cluster["v1"].Node[_]; k := input.k; object.get(node, k, 1) == 1`: "**",
	} {
		helpers := "q := data.inventory\n" +
			"tainted(node, key) if node.spec.taints[_].key == key\n" +
			"otherwise(node) := 1 if { node.spec.x } else := 2 if { node.spec.y }\n" +
			"nodes := data.inventory.cluster[\"v1\"].Node\n"
		compiled, faults := compileRule("package p\n" + helpers + "violation contains \"x\" if { " + body + " }")
		if faults != nil {
			t.Errorf("%s: %v", body, faults)
			continue
		}
		got := &fields{}
		for _, read := range compiled.inventory {
			if read.of(schema.GroupVersionKind{Version: "v1", Kind: "Node"}) {
				got.add(read.path, read.whole)
			}
		}
		if got.String() != want {
			t.Errorf("%s\n got %q\nwant %q", body, got, want)
		}
	}
}

func TestInventoryMustBeNamed(t *testing.T) {
	node := v1.InventoryKind{APIVersion: "v1", Kind: "Node"}
	for body, tc := range map[string]struct {
		named []v1.InventoryKind
		want  string
	}{
		`data.inventory.cluster["v1"].Node[_].spec.a`: {
			want: "spec.inventory: Required value: the rule reads objects of kind Node at 3:3: add {apiVersion: v1, kind: Node}",
		},
		`data.inventory.namespace[_][v]["Ingress"][_].spec.a; v != ""`: {
			named: []v1.InventoryKind{node},
			want:  "spec.inventory: Required value: the rule reads objects of kind Ingress at 3:3: add {apiVersion: …, kind: Ingress}",
		},
		`count(data.inventory) > 1`: {
			want: "spec.inventory: Required value: the rule reads data.inventory at 3:9: name the kinds that it reads, each with its apiVersion",
		},
		`input.object`: {
			named: []v1.InventoryKind{{APIVersion: "a/b/c", Kind: "Node"}},
			want:  `spec.inventory[0]: Invalid value: "a/b/c Node": needs an apiVersion such as apps/v1, and a kind`,
		},
		`data.inventory.cluster.Node["v1"].a`: {
			want: "spec.inventory: Required value: the rule reads the inventory at 3:3 as if Node were an apiVersion and v1 a kind: write data.inventory.cluster[apiVersion][kind][name], or data.inventory.namespace[namespace][apiVersion][kind][name]",
		},
		`data.inventory.namespace["v1"].Pod[name].a; name != ""`: {
			want: "spec.inventory: Required value: the rule reads the inventory at 3:3 as if Pod were an apiVersion and * a kind: write data.inventory.cluster[apiVersion][kind][name], or data.inventory.namespace[namespace][apiVersion][kind][name]",
		},
		`count(data.inventory) > 2`:                   {named: []v1.InventoryKind{node}},
		`data.inventory.cluster[_]["Node"][_].spec.a`: {named: []v1.InventoryKind{node}},
	} {
		policy := &v1.WorkloadPolicy{}
		policy.Spec.Match.Resources = []v1.PolicyResources{{Kinds: []string{"Pod"}}}
		policy.Spec.Inventory = tc.named
		policy.Spec.Rego = "package p\nviolation contains \"x\" if {\n  " + body + "\n}"
		_, err := Compile(policy)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}
