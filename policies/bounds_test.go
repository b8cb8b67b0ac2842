package policies_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/policies"
)

// blob is an object with a text of 3 MiB, as large as an API server accepts.
var blob = []byte(`{"kind":"X","spec":{"blob":"` + strings.Repeat("a", 3<<20) + `"}}`)

// wide is an object of 3 MiB with many members.
var wide = func() []byte {
	items := make([]string, 42_000)
	for i := range items {
		items[i] = fmt.Sprintf(`{"name":"item-%06d","value":"abcdefghijklmnopqrst","n":[1,2,3]}`, i)
	}
	return []byte(`{"kind":"X","spec":{"list":[` + strings.Join(items, ",") + `]}}`)
}()

// doubled is a rule that applies a step to its own result 30 times.
func doubled(seed, step string) string {
	var body strings.Builder
	fmt.Fprintf(&body, "x0 := %s\n", seed)
	for i := range 30 {
		fmt.Fprintf(&body, "x%d := %s\n", i+1, strings.ReplaceAll(step, "X", fmt.Sprintf("x%d", i)))
	}
	return ruleOf(body.String() + "walk(x30, [_, \"never\"])")
}

func ruleOf(body string) string { return "package p\nviolation contains \"x\" if {\n" + body + "\n}" }

// TestExcessIsCut holds what rules may do to objects as large as there are, and
// to themselves: they end in time, without taking the process along, and other
// requests and policies are none the worse.
func TestExcessIsCut(t *testing.T) {
	const late, much = policies.ReasonDeadline, policies.ReasonMemory
	tests := map[string]struct {
		rego   string
		object []byte
		want   policies.ErrorReason
	}{
		"a walk over all pairs of a large object": {ruleOf(`walk(input.object, [p, v]); walk(input.object, [q, w]); p != q; v == w; v == 17.5`), wide, late},
		"a comprehension over all triples":        {ruleOf(`r := numbers.range(1, 3000); s := {[i, j, k] | some i in r; some j in r; some k in r}; count(s) == 7`), trainingJob, late},
		"a list of large texts":                   {ruleOf(`r := numbers.range(1, 3000); s := [sprintf("%s%d", [input.object.spec.blob, i]) | some i in r]; count(s) == 7`), blob, late},
		"a range":                                 {ruleOf(`count(numbers.range(1, 1000000000)) == 7`), trainingJob, late},
		"a range by steps":                        {ruleOf(`count(numbers.range_step(1, 1000000000, 2)) == 7`), trainingJob, late},
		"a slow regular expression":               {ruleOf(`regex.match("(a{1,30}b?){1,30}c", input.object.spec.blob)`), blob, late},
		"sets of pairs":                           {ruleOf(`count(union({{[i, j]} | some i in numbers.range(1, 9999); some j in numbers.range(1, 9999)})) == 1`), trainingJob, late},

		"a split by a slow expression":  {ruleOf(`count(regex.split("(a{1,30}b?){1,30}c", input.object.spec.blob)) == 7`), blob, much},
		"a search by a slow expression": {ruleOf(`count(regex.find_n("(a{1,30}b?){1,30}c", input.object.spec.blob, -1)) == 7`), blob, much},
		"a text in each place of itself": {
			ruleOf(`replace(input.object.spec.blob, "a", input.object.spec.blob) == "y"`), blob, much,
		},
		"the same by several patterns": {
			ruleOf(`strings.replace_n({"a": input.object.spec.blob}, input.object.spec.blob) == "y"`), blob, much,
		},
		"the same by an expression": {
			ruleOf(`regex.replace(input.object.spec.blob, "a", input.object.spec.blob) == "y"`), blob, much,
		},
		"texts that double":       {doubled(`"abcdefgh"`, `concat("", [X, X])`), trainingJob, much},
		"formats that double":     {doubled(`"abcdefgh"`, `sprintf("%s%s", [X, X])`), trainingJob, much},
		"templates that double":   {doubled(`"abcdefgh"`, `$"{X}{X}"`), trainingJob, much},
		"encodings that double":   {doubled(`"abcdefgh"`, `hex.encode(X)`), trainingJob, much},
		"lists that double":       {doubled(`[1, 2, 3]`, `array.concat(X, X)`), trainingJob, much},
		"squares of squares":      {doubled(`12345678901234567890`, `X * X`), trainingJob, much},
		"a number of many digits": {ruleOf(`to_number(replace(input.object.spec.blob, "a", "7")) + 1 == 7`), blob, much},
		"a product of many": {
			ruleOf(`product([9 | some _ in numbers.range(1, 20000)]) == 7`), trainingJob, much,
		},
		"widths of a format": {
			ruleOf(`sprintf("` + strings.Repeat("%1000000d", 300) + `", numbers.range(1, 300)) == "y"`), trainingJob, much,
		},
		"an indent": {
			ruleOf(`json.marshal_with_options(input.object.spec.list, {"pretty": true, "prefix": sprintf("%100000d", [1])}) == "7"`), wide, much,
		},
		"networks against networks": {
			ruleOf(`n := [sprintf("10.0.%d.%d/32", [i, j]) | some i in numbers.range(0, 40); some j in numbers.range(0, 100)]; count(net.cidr_contains_matches(n, n)) == 1`), trainingJob, much,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			deadline := 250 * time.Millisecond
			if tc.want == much {
				// It ends long before, however busy the machine is.
				deadline = 30 * time.Second
			}
			engine := engineWith(t, policies.Options{Deadline: deadline, Concurrency: 1},
				policy("bad-fail", tc.rego), policy("bad-ignore", tc.rego, ignoreFailure), policy("good", alwaysFails))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			verdict := engine.Snapshot().Judge(t.Context(), createRequest(tc.object))
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			t.Logf("two policies took %s and %d MB", took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20)
			// A busy machine may be slow to schedule what cuts.
			if took > 10*time.Second {
				t.Errorf("took %s", took)
			}
			// What is cut late has allocated meanwhile, as fast as it can; how much
			// it may hold is for TestMemoryIsWatched.
			if allocated := after.TotalAlloc - before.TotalAlloc; tc.want == much && allocated > 512<<20 {
				t.Errorf("took %d MB", allocated>>20)
			}
			if len(verdict.Errors) != 2 {
				t.Fatalf("got errors %v", verdict.Errors)
			}
			for _, e := range verdict.Errors {
				if e.Reason != tc.want {
					t.Errorf("got %s: %s, want %s", e.Reason, e.Message, tc.want)
				}
			}
			if len(verdict.Denied()) != 1 || len(verdict.Failed()) != 1 || len(verdict.Warnings()) != 1 {
				t.Errorf("got denied %v, failed %v, warnings %v", verdict.Denied(), verdict.Failed(), verdict.Warnings())
			}
		})
	}
}

// TestLargeObjectsAreJudged walks over 3 MiB, and looks for a pattern in them,
// with no more than the usual deadline.
func TestLargeObjectsAreJudged(t *testing.T) {
	for name, tc := range map[string]struct {
		rego   string
		object []byte
	}{
		"a walk":    {ruleOf(`walk(input.object, [_, v]); v == "abcdefghijklmnopqrst"`), wide},
		"a pattern": {ruleOf(`regex.match("^a+$", input.object.spec.blob)`), blob},
		"a sum":     {ruleOf(`sum([n | some item in input.object.spec.list; some n in item.n]) == 252000`), wide},
	} {
		engine := engineWith(t, policies.Options{Deadline: 10 * time.Second}, policy("p", tc.rego))
		verdict := engine.Snapshot().Judge(t.Context(), createRequest(tc.object))
		if len(verdict.Errors) > 0 || len(verdict.Denied()) != 1 {
			t.Errorf("%s: got %+v", name, verdict)
		}
	}
}

// TestHangingPolicyHoldsUpNobodyElse has more evaluations hang, in what nothing
// can cut, than there are slots.
func TestHangingPolicyHoldsUpNobodyElse(t *testing.T) {
	// Comparing two values that hold others many times takes very long, and no
	// memory. The members are rules so that each is made once.
	var rego strings.Builder
	rego.WriteString("package p\na0 := [input.object.spec.hang]\nb0 := [input.object.spec.hang]\n")
	const depth = 26
	for i := range depth {
		fmt.Fprintf(&rego, "a%d := [a%d, a%d]\nb%d := [b%d, b%d]\n", i+1, i, i, i+1, i, i)
	}
	fmt.Fprintf(&rego, "violation contains \"x\" if { input.object.spec.hang; a%d != b%d }", depth, depth)
	engine := engineWith(t, policies.Options{Deadline: 250 * time.Millisecond, Concurrency: 1},
		policy("hangs", rego.String()), policy("other", "package p\nviolation contains \"y\" if input.object.spec.other"))
	hanging, other := []byte(`{"spec":{"hang":"x"}}`), []byte(`{"spec":{"other":true}}`)
	var reasons []policies.ErrorReason
	for len(reasons) == 0 || len(reasons) < 20 && reasons[len(reasons)-1] != policies.ReasonBusy {
		verdict := engine.Snapshot().Judge(t.Context(), createRequest(hanging))
		if len(verdict.Errors) != 1 {
			t.Fatalf("it does not hang: %+v", verdict)
		}
		reasons = append(reasons, verdict.Errors[0].Reason)
		verdict = engine.Snapshot().Judge(t.Context(), createRequest(other))
		if len(verdict.Errors) != 0 || len(verdict.Denied()) != 1 {
			t.Errorf("others do not run on: %+v", verdict)
		}
	}
	if reasons[0] != policies.ReasonDeadline || reasons[len(reasons)-1] != policies.ReasonBusy {
		t.Errorf("got %v, want the first cut and the last not begun", reasons)
	}
	// It is asked again once those that hang have ended.
	for end := time.Now().Add(2 * time.Minute); ; {
		<-time.After(50 * time.Millisecond)
		verdict := engine.Snapshot().Judge(t.Context(), createRequest(hanging))
		if len(verdict.Errors) == 1 && verdict.Errors[0].Reason == policies.ReasonDeadline {
			break
		}
		if time.Now().After(end) {
			t.Fatal("what hung once is never asked again")
		}
	}
}

func TestMemoryIsWatched(t *testing.T) {
	grows := ruleOf(`s := [sprintf("%s%d", [input.object.spec.blob, i]) | some i in numbers.range(1, 3000)]; count(s) == 7`)
	engine := engineWith(t, policies.Options{Deadline: 30 * time.Second, MemoryBytes: heapNow() + 200<<20}, policy("p", grows), policy("q", alwaysFails))
	verdict := engine.Snapshot().Judge(t.Context(), createRequest(blob))
	if len(verdict.Errors) != 1 || verdict.Errors[0].Reason != policies.ReasonMemory || len(verdict.Denied()) != 1 {
		t.Errorf("got %v", verdict.Errors)
	}
	if heap := heapNow(); heap > 2<<30 {
		t.Errorf("the heap is at %d MB", heap>>20)
	}
}

func heapNow() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
