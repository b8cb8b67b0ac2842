package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/library"
	"github.com/penstock-dev/penstock/test/cluster"
)

// Bars of what policies cost beside the evaluation: what 500 take to load, and
// one edit among them to come into force, in seconds of a processor; and what an object of the
// inventory takes of memory, of what it takes as JSON.
const (
	loadLimit           = 10.0
	editLimit           = 0.25
	inventoryWholeLimit = 1.5
	inventoryFieldLimit = 0.4
)

// loadTurns is how often loading is measured.
const loadTurns = 3

// policyBars measures the policy engine: in this process what needs no server,
// and with a running manager the rest.
func policyBars() ([]bar, error) {
	all, err := library.Policies()
	if err != nil {
		return nil, err
	}
	loading, err := loadBars(ofAnotherKind(all, manyPolicies))
	if err != nil {
		return nil, err
	}
	held, err := inventoryBars()
	if err != nil {
		return nil, err
	}
	running, err := livePolicyBars(all)
	return slices.Concat(loading, held, running), err
}

// loadBars measures how long many policies take to load, and an edit of the Rego
// of one of them.
func loadBars(many []*v1.WorkloadPolicy) ([]bar, error) {
	var loads, edits []float64
	for range loadTurns {
		engine := policies.NewEngine(policies.Options{})
		start := processTime()
		if faults := engine.Replace(many); len(faults) > 0 {
			return nil, fmt.Errorf("the library does not compile: %v", faults)
		}
		loads = append(loads, (processTime() - start).Seconds())
		edited := many[len(many)/2].DeepCopy()
		edited.Spec.Rego += fmt.Sprintf("\n# edited %d times\n", len(edits))
		start = processTime()
		if err := engine.Set(edited); err != nil {
			return nil, err
		}
		edits = append(edits, (processTime() - start).Seconds())
	}
	say := func(name string, taken []float64) {
		fmt.Printf("%-28s %-36s %8.1f ms (%.1f to %.1f)\n", name, "penstock", median(taken)*1e3, slices.Min(taken)*1e3, slices.Max(taken)*1e3)
	}
	say("policy-load-500-s", loads)
	say("policy-edit-of-500-s", edits)
	return []bar{{"policy-load-500-s", median(loads), loadLimit}, {"policy-edit-of-500-s", median(edits), editLimit}}, nil
}

// inventoryBars measures the memory that pods take in the inventory.
func inventoryBars() ([]bar, error) {
	const thousands = 10
	pods, size, err := inventoryPods(1000 * thousands)
	if err != nil {
		return nil, err
	}
	var bars []bar
	for _, with := range []struct {
		name, rego string
		limit      float64
	}{
		{"inventory-whole", `data.inventory.namespace[_].v1.Pod[_] == input.object`, inventoryWholeLimit},
		{"inventory-one-field", `data.inventory.namespace[_].v1.Pod[_].spec.nodeName == "none"`, inventoryFieldLimit},
	} {
		policy := &v1.WorkloadPolicy{}
		policy.Name = "inventory"
		policy.Spec.Match.Resources = []v1.PolicyResources{{Group: v1.GroupName, Kinds: []string{v1.TrainingJobKind}}}
		policy.Spec.Inventory = []v1.InventoryKind{{APIVersion: "v1", Kind: "Pod"}}
		policy.Spec.Rego = "package p\nviolation contains \"x\" if " + with.rego
		engine := policies.NewEngine(policies.Options{})
		if err := engine.Set(policy); err != nil {
			return nil, err
		}
		before := heapInUse()
		if err := engine.Inventory().Replace(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, pods); err != nil {
			return nil, err
		}
		taken := heapInUse() - before
		runtime.KeepAlive(engine)
		fmt.Printf("%-28s %-36s %8d kB for 1,000 pods of %d bytes\n", with.name, "penstock", taken/thousands>>10, size)
		bars = append(bars, bar{with.name, float64(taken) / float64(1000*thousands*size), with.limit})
	}
	runtime.KeepAlive(pods)
	return bars, nil
}

// inventoryPods are pods of jobs of eight, and the size of one in JSON.
func inventoryPods(n int) (pods []map[string]any, size int, err error) {
	root, err := cluster.ModuleRoot()
	if err != nil {
		return nil, 0, err
	}
	raw, err := os.ReadFile(filepath.Join(root, "policies", "testdata", "pod.json"))
	if err != nil {
		return nil, 0, fmt.Errorf("failed to read the pod: %w", err)
	}
	pods = make([]map[string]any, n)
	for i := range pods {
		if err := json.Unmarshal(raw, &pods[i]); err != nil {
			return nil, 0, fmt.Errorf("failed to parse the pod: %w", err)
		}
		metadata := pods[i]["metadata"].(map[string]any)
		metadata["name"], metadata["uid"] = fmt.Sprintf("pod-%d", i), fmt.Sprintf("8d3e5e4e-0c55-4e0f-9d64-%012d", i)
		pods[i]["spec"].(map[string]any)["nodeName"] = fmt.Sprintf("node-%d", i/8)
	}
	compact, err := json.Marshal(pods[0])
	return pods, len(compact), err
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// livePolicyBars compares a running manager, with more and more policies, to a
// running server that only decodes and allows, and edits policies under load.
func livePolicyBars(all []*v1.WorkloadPolicy) ([]bar, error) {
	return withServers(func(ctx context.Context, l *liveServers) ([]bar, error) {
		var bars []bar
		add := func(name, says string, limit float64) error {
			value, err := compare(name, l.ours.posted(ctx, says, l.review), l.reference.posted(ctx, "controller-runtime, decode and allow", l.review))
			bars = append(bars, bar{name, value, limit})
			return err
		}
		loaded := 0
		others := ofAnotherKind(all, manyPolicies)
		for _, n := range []int{0, 1, 20, manyPolicies} {
			if err := l.create(ctx, others[loaded:n]); err != nil {
				return nil, err
			}
			loaded = n
			if err := add(fmt.Sprintf("policy-unmatched-%d", n), fmt.Sprintf("penstock, %d policies, none matches", n), noPolicyLimit); err != nil {
				return nil, err
			}
		}
		if err := l.deleteAll(ctx); err != nil {
			return nil, err
		}
		if err := l.create(ctx, all); err != nil {
			return nil, err
		}
		if err := add("policy-library", fmt.Sprintf("penstock, the whole library of %d policies", len(all)), admissionLimit); err != nil {
			return nil, err
		}
		swaps, err := swapBars(ctx, l)
		return append(bars, swaps...), err
	})
}
