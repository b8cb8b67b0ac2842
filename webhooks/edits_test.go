package webhooks_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/library"
	"github.com/penstock-dev/penstock/test/fixtures"
	"github.com/penstock-dev/penstock/webhooks"
)

// numbered are two policies that say a number three times: by the Rego of each,
// and by the parameters of one.
func numbered(n int) []*v1.WorkloadPolicy {
	const field = `; field := ""`
	first := policyOn("first", v1.GroupName, v1.TrainingJobKind, fmt.Sprintf(`msg := sprintf("number %d %%d", [input.parameters.n])`, n)+field, warns)
	first.Spec.Parameters = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"n":%d}`, n)}
	second := policyOn("second", v1.GroupName, v1.TrainingJobKind,
		fmt.Sprintf(`count(data.inventory.cluster.v1.Node) > 0; msg := "number %d %d"`, n, n)+field, warns)
	second.Spec.Inventory = []v1.InventoryKind{{APIVersion: "v1", Kind: "Node"}}
	return []*v1.WorkloadPolicy{first, second}
}

// saying is a verdict: what was said by which snapshot.
type saying struct{ digest, numbers string }

// TestPoliciesAreEditedUnderLoad edits policies two hundred times, as fast as it
// goes, while jobs are judged, the inventory changes and decisions are logged.
// Every request is answered, by one snapshot whole. make test runs it with the
// race detector too.
func TestPoliciesAreEditedUnderLoad(t *testing.T) {
	all, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	engine := policies.NewEngine(policies.Options{Deadline: time.Minute, Observer: webhooks.PolicyMetrics{}})
	known := map[string]int{}
	edit := func(n int) {
		if faults := engine.Replace(append(numbered(n), all...)); len(faults) > 0 {
			t.Error(faults)
		}
		known[engine.Snapshot().Digest()] = n
	}
	edit(0)
	nodes := schema.GroupVersionKind{Version: "v1", Kind: "Node"}
	for _, need := range engine.Inventory().Needs() {
		if err := engine.Inventory().Replace(need.Kind, fixtures.Nodes(20)); err != nil {
			t.Fatal(err)
		}
	}
	options := onlineOptions(t)
	options.Engine = engine
	options.Decisions = webhooks.NewDecisionLog(webhooks.DecisionLogOptions{Output: io.Discard, AllowedRate: 1, Mask: maskOf(t, ".*"), Clock: time.Now, Log: logr.Discard()})
	handlers := served(gateOf(t, options))
	review := reviewOf(t, create(t, job(pytorch(role("Worker", "", "")))))

	ctx, stop := context.WithCancel(t.Context())
	var beside sync.WaitGroup
	beside.Go(func() { _ = options.Decisions.Start(ctx) })
	var mu sync.Mutex
	said := map[saying]int{}
	for range 4 {
		beside.Go(func() {
			pace := time.NewTicker(2 * time.Millisecond)
			defer pace.Stop()
			for ctx.Err() == nil {
				<-pace.C
				response := responseOf(t, handlers.post(context.WithoutCancel(ctx), validateJobs+"?timeout=30s", review))
				var numbers []string
				for _, warning := range response.Warnings {
					if number, ok := strings.CutPrefix(warning, "number "); ok {
						numbers = append(numbers, strings.SplitN(number, " (", 2)[0])
					} else {
						t.Errorf("got the warning %q", warning)
					}
				}
				if !response.Allowed {
					t.Errorf("refused: %v", response.Result)
				}
				mu.Lock()
				said[saying{response.AuditAnnotations["snapshot-digest"], strings.Join(numbers, " ")}]++
				mu.Unlock()
			}
		})
	}
	const edits = 200
	for n := range edits {
		switch n % 4 {
		case 1: // another policy comes and goes
			if err := engine.Set(policyOn("passing", v1.GroupName, v1.TrainingJobKind, `input.object.spec.none; msg := ""; field := ""`)); err != nil {
				t.Fatal(err)
			}
			known[engine.Snapshot().Digest()] = n
			engine.Remove("passing")
		case 2: // one does not compile, and changes nothing
			broken := numbered(n)[0]
			broken.Spec.Rego = "package p\nviolation contains x if y"
			if err := engine.Set(broken); err == nil {
				t.Fatal("it compiles")
			}
		case 3:
			if err := engine.Inventory().Replace(nodes, fixtures.Nodes(20+n)); err != nil {
				t.Fatal(err)
			}
		}
		edit(n + 1)
	}
	stop()
	beside.Wait()

	seen, requests := map[int]bool{}, 0
	for one, count := range said {
		requests += count
		n, ok := known[one.digest]
		if number := fmt.Sprintf("%d %d", n, n); ok && one.numbers != number+" "+number {
			t.Errorf("%d verdicts of the snapshot of number %d say %q", count, n, one.numbers)
		}
		first, _, _ := strings.Cut(one.numbers, " ")
		if one.numbers != strings.TrimSpace(strings.Repeat(first+" ", 4)) {
			t.Errorf("%d mixed verdicts: %q", count, one.numbers)
		}
		seen[n] = true
	}
	t.Logf("%d requests saw %d of %d edits", requests, len(seen), edits)
	if len(seen) < 10 {
		t.Errorf("requests saw only %d edits", len(seen))
	}
}
