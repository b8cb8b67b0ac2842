package policies_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime"
	"testing"

	"github.com/penstock-dev/penstock/policies"
)

const (
	// readsOneField reads what nearly all inventory rules do: a field or two.
	readsOneField = "package p\nviolation contains name if { some ns, name; data.inventory.namespace[ns][\"v1\"].Pod[name].spec.nodeName == \"none\" }"
	// readsWhole has whole objects kept.
	readsWhole = "package p\nviolation contains name if { some ns, name; data.inventory.namespace[ns][\"v1\"].Pod[name] == input.object }"
	// looksUp reads one object by its name.
	looksUp = "package p\nviolation contains \"x\" if data.inventory.namespace.team[\"v1\"].Pod[\"pod-7\"].spec.nodeName == \"none\""
)

// inventoryPods are running pods of about 4 kB, as the API server stores them,
// of jobs of eight.
func inventoryPods(b testing.TB, n int) []map[string]any {
	b.Helper()
	raw, err := os.ReadFile("testdata/pod.json")
	if err != nil {
		b.Fatal(err)
	}
	pods := make([]map[string]any, n)
	for i := range pods {
		if err := json.Unmarshal(raw, &pods[i]); err != nil {
			b.Fatal(err)
		}
		metadata := pods[i]["metadata"].(map[string]any)
		metadata["name"] = fmt.Sprintf("pod-%d", i)
		metadata["uid"] = fmt.Sprintf("8d3e5e4e-0c55-4e0f-9d64-%012d", i)
		metadata["resourceVersion"] = fmt.Sprint(1_000_000 + i)
		metadata["labels"].(map[string]any)["penstock.dev/job-name"] = fmt.Sprintf("job-%d", i/8)
		metadata["labels"].(map[string]any)["penstock.dev/index"] = fmt.Sprint(i % 8)
		pods[i]["spec"].(map[string]any)["nodeName"] = fmt.Sprintf("node-%d", i/8)
		status := pods[i]["status"].(map[string]any)
		status["podIP"] = fmt.Sprintf("10.0.%d.%d", i/250, i%250)
		status["startTime"] = fmt.Sprintf("2026-05-01T%02d:%02d:%02dZ", i/3600%24, i/60%60, i%60)
	}
	return pods
}

func inventoryEngine(b testing.TB, rego string, pods []map[string]any) *policies.Engine {
	b.Helper()
	loaded := policy("p", rego, reading(podKind))
	engine := engineWith(b, policies.Options{}, loaded)
	if err := engine.Inventory().Replace(podKind, pods); err != nil {
		b.Fatal(err)
	}
	return engine
}

// BenchmarkInventoryMemory reports the heap that 1,000 pods take.
func BenchmarkInventoryMemory(b *testing.B) {
	for name, rego := range map[string]string{"one field is read": readsOneField, "all is read": readsWhole} {
		b.Run(name, func(b *testing.B) {
			pods := inventoryPods(b, 10_000)
			for b.Loop() {
				before := heap()
				engine := inventoryEngine(b, rego, pods)
				b.ReportMetric(float64(heap()-before)/10/1024, "kB/1000pods")
				runtime.KeepAlive(engine)
			}
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// BenchmarkInventorySet changes one pod among others in its namespace.
func BenchmarkInventorySet(b *testing.B) {
	for _, others := range []int{10, 1_000, 10_000} {
		b.Run(fmt.Sprintf("among %d", others), func(b *testing.B) {
			pods := inventoryPods(b, others)
			engine := inventoryEngine(b, readsOneField, pods)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				pod := maps.Clone(pods[i%others])
				pod["spec"] = map[string]any{"nodeName": fmt.Sprint("node-", i%7)}
				if err := engine.Inventory().Set(podKind, pod); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkInventoryJudge judges requests while a pod changes between each two.
func BenchmarkInventoryJudge(b *testing.B) {
	for name, rego := range map[string]string{"a name": looksUp, "through all": readsOneField} {
		for _, changing := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s of 10000, changing %t", name, changing), func(b *testing.B) {
				pods := inventoryPods(b, 10_000)
				engine := inventoryEngine(b, rego, pods)
				request := createRequest([]byte(`{"spec":{}}`))
				for i := 0; b.Loop(); i++ {
					if changing {
						if err := engine.Inventory().Set(podKind, pods[i%len(pods)]); err != nil {
							b.Fatal(err)
						}
					}
					if verdict := engine.Snapshot().Judge(b.Context(), request); !verdict.Allowed() {
						b.Fatal(verdict)
					}
				}
			})
		}
	}
}
