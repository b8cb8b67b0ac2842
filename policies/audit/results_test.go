package audit

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/stored"
	"github.com/penstock-dev/penstock/test/fixtures"
)

var podKind = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

// says is what a policy says of an object.
func says(policy string, s standing, message string) policyResult {
	one := policyResult{policy: policy, standing: s}
	switch {
	case s.violates() || s == standingExcepted:
		action := v1.PolicyAction(s)
		if s == standingExcepted {
			action = v1.ActionDeny
		}
		one.violations = []stored.Violation{{Violation: policies.Violation{Policy: policy, Message: message, Action: action}, Path: "spec.a"}}
	case s == standingFailed:
		one.fault = message
	}
	return one
}

func podNamed(name string, results ...policyResult) auditedObject {
	return auditedObject{kind: podKind, namespace: "team", name: name, uid: types.UID(name), results: results}
}

// inBrief is a status in a line.
func inBrief(status v1.PolicyAudit) string {
	text := fmt.Sprintf("judged %d deny %d warn %d audit %d excepted %d errors %d not %d", *status.Judged, *status.Violations.Deny,
		*status.Violations.Warn, *status.Violations.Audit, *status.Excepted, *status.Errors, *status.NotEvaluated)
	if *status.Violations.Total != *status.Violations.Deny+*status.Violations.Warn+*status.Violations.Audit {
		text += fmt.Sprintf(" of %d", *status.Violations.Total)
	}
	for _, one := range status.Samples {
		text += " " + one.Name
	}
	return text
}

const (
	denies  = standing(v1.ActionDeny)
	warns   = standing(v1.ActionWarn)
	records = standing(v1.ActionAudit)
)

func TestAuditResults(t *testing.T) {
	type step struct {
		name string
		do   func(*results) (changed []string, news bool)
		// changed are policies that say something else, want what a and b say.
		changed string
		news    bool
		want    [2]string
	}
	set := func(object auditedObject, only ...string) func(*results) ([]string, bool) {
		return func(r *results) ([]string, bool) {
			var names map[string]bool
			for _, name := range only {
				if names == nil {
					names = map[string]bool{}
				}
				names[name] = true
			}
			return r.set(object, 1, names)
		}
	}
	const nothing = "judged 0 deny 0 warn 0 audit 0 excepted 0 errors 0 not 0"
	steps := []step{
		{"passes a", set(podNamed("x", says("a", standingPasses, ""))), "a", false, [2]string{"judged 1 deny 0 warn 0 audit 0 excepted 0 errors 0 not 0", nothing}},
		{"the same again", set(podNamed("x", says("a", standingPasses, ""))), "", false, [2]string{"judged 1 deny 0 warn 0 audit 0 excepted 0 errors 0 not 0", nothing}},
		{"breaks both", set(podNamed("x", says("a", denies, "no"), says("b", warns, "hm"))), "a b", true, [2]string{"judged 1 deny 1 warn 0 audit 0 excepted 0 errors 0 not 0 x", "judged 1 deny 0 warn 1 audit 0 excepted 0 errors 0 not 0 x"}},
		{"in other words", set(podNamed("x", says("a", denies, "never"), says("b", warns, "hm"))), "a", true, [2]string{"judged 1 deny 1 warn 0 audit 0 excepted 0 errors 0 not 0 x", "judged 1 deny 0 warn 1 audit 0 excepted 0 errors 0 not 0 x"}},
		{"what a alone says", set(podNamed("x", says("a", records, "so")), "a"), "a", true, [2]string{"judged 1 deny 0 warn 0 audit 1 excepted 0 errors 0 not 0 x", "judged 1 deny 0 warn 1 audit 0 excepted 0 errors 0 not 0 x"}},
		{"a is not asked any more", set(podNamed("x"), "a"), "a", true, [2]string{nothing, "judged 1 deny 0 warn 1 audit 0 excepted 0 errors 0 not 0 x"}},
		{"another, excepted and failed", set(podNamed("w", says("a", standingExcepted, "no"), says("b", standingFailed, "slow"))), "a b", true, [2]string{"judged 1 deny 0 warn 0 audit 0 excepted 1 errors 0 not 0", "judged 1 deny 0 warn 1 audit 0 excepted 0 errors 1 not 0 x"}},
		{"what is not known", set(podNamed("v", says("a", standingLacks+"User", ""))), "a", false, [2]string{"judged 1 deny 0 warn 0 audit 0 excepted 1 errors 0 not 1", "judged 1 deny 0 warn 1 audit 0 excepted 0 errors 1 not 0 x"}},
		{"is gone", func(r *results) ([]string, bool) { return r.drop(podKind, keyOf("x")), false }, "b", false, [2]string{"judged 1 deny 0 warn 0 audit 0 excepted 1 errors 0 not 1", "judged 0 deny 0 warn 0 audit 0 excepted 0 errors 1 not 0"}},
		{"is gone twice", func(r *results) ([]string, bool) { return r.drop(podKind, keyOf("x")), false }, "", false, [2]string{"judged 1 deny 0 warn 0 audit 0 excepted 1 errors 0 not 1", "judged 0 deny 0 warn 0 audit 0 excepted 0 errors 1 not 0"}},
		{"a is deleted", func(r *results) ([]string, bool) { return nil, len(r.dropPolicy("a", podKind)) == 1 }, "", true, [2]string{nothing, "judged 0 deny 0 warn 0 audit 0 excepted 0 errors 1 not 0"}},
		{"b is deleted", func(r *results) ([]string, bool) { return nil, len(r.dropPolicy("b", podKind)) == 1 }, "", true, [2]string{nothing, nothing}},
	}
	r := newResults()
	for _, step := range steps {
		changed, news := step.do(r)
		slices.Sort(changed)
		if got := strings.Join(changed, " "); got != step.changed || news != step.news {
			t.Errorf("%s: %q changed, news %t; want %q, %t", step.name, got, news, step.changed, step.news)
		}
		for at, policy := range []string{"a", "b"} {
			if got := inBrief(r.status(policy, 1, nil)); got != step.want[at] {
				t.Errorf("%s: %s says %q, want %q", step.name, policy, got, step.want[at])
			}
		}
	}
	if len(r.signatures)+len(r.found)+len(r.entries[podKind]) > 0 {
		t.Errorf("something is left: %v %v %v", r.signatures, r.found, r.entries)
	}
}

// Whatever is noted in whatever order, the counts are those of what was noted last.
func TestAuditResultsAddUp(t *testing.T) {
	all := []standing{standingPasses, denies, warns, records, standingExcepted, standingFailed, standingLacks + "User", ""}
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		r, last := newResults(), map[string]map[string]standing{}
		for range 2000 {
			name := fmt.Sprint("p", random.IntN(30))
			if random.IntN(10) == 0 {
				r.drop(podKind, keyOf(types.UID(name)))
				delete(last, name)
				continue
			}
			var results []policyResult
			var only map[string]bool
			if last[name] == nil {
				last[name] = map[string]standing{}
			}
			for _, policy := range []string{"a", "b", "c"} {
				if random.IntN(3) == 0 {
					if only == nil {
						only = map[string]bool{}
					}
					only[policy] = true
				}
			}
			for _, policy := range []string{"a", "b", "c"} {
				if only != nil && !only[policy] {
					continue
				}
				delete(last[name], policy)
				if s := all[random.IntN(len(all))]; s != "" {
					results = append(results, says(policy, s, fmt.Sprint(random.IntN(2))))
					last[name][policy] = s
				}
			}
			r.set(podNamed(name, results...), random.Uint64(), only)
		}
		for _, policy := range []string{"a", "b", "c"} {
			counts := map[standing]int32{}
			for _, of := range last {
				counts[of[policy]]++
			}
			got := r.status(policy, 1, nil)
			want := fmt.Sprint(counts[denies], counts[warns], counts[records], counts[standingExcepted], counts[standingFailed], counts[standingLacks+"User"])
			if is := fmt.Sprint(*got.Violations.Deny, *got.Violations.Warn, *got.Violations.Audit, *got.Excepted, *got.Errors, *got.NotEvaluated); is != want {
				t.Fatalf("seed %d, policy %s: %s, want %s", seed, policy, is, want)
			}
		}
	}
}

func TestAuditSamplesAreTheSameInAnyOrder(t *testing.T) {
	objects := []auditedObject{}
	for i := range 30 {
		s, kind := []standing{records, warns, denies}[i%3], podKind
		if i%2 == 0 {
			kind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
		}
		object := podNamed(fmt.Sprintf("n%02d", i), says("a", s, strings.Repeat("ü", 300)))
		object.kind = kind
		objects = append(objects, object)
	}
	var want v1.PolicyAudit
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, 2))
		random.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		r := newResults()
		for _, object := range objects {
			r.set(object, 1, nil)
		}
		got := r.status("a", 4, []stored.UnseenKind{{Kind: "b", Reason: "r"}, {Kind: "a", Reason: "r"}, {Kind: "b", Reason: "r"}})
		if seed == 0 {
			want = got
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-first +now):\n%s", diff)
		}
	}
	if len(want.Samples) != maxSamples || want.Samples[0].Action != v1.ActionDeny || want.Samples[0].Kind != "Deployment.apps" || want.Samples[0].Name != "n02" || want.Samples[5].Kind != "Pod" || len(want.Samples[0].Message) > maxSampleText {
		t.Errorf("samples %+v", want.Samples)
	}
	if len(want.Unseen) != 2 || want.Unseen[0].Subject != "a" || want.ObservedGeneration != 4 {
		t.Errorf("unseen %v, generation %d", want.Unseen, want.ObservedGeneration)
	}
}

func TestAuditDue(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	r := newResults()
	excepted := says("a", standingExcepted, "no")
	excepted.until, excepted.due = at(100), at(100)
	failed := says("b", standingFailed, "slow")
	failed.due = at(50)
	r.set(podNamed("x", excepted), 1, nil)
	r.set(podNamed("y", failed), 1, nil)
	if got := r.nextDue(); !got.Equal(at(50)) {
		t.Errorf("next is due at %v", got)
	}
	for now, want := range map[int64]int{49: 0, 50: 1, 99: 1, 100: 2} {
		if got := len(r.due(at(now))); got != want {
			t.Errorf("at %d: %d objects are due, want %d", now, got, want)
		}
	}
	// What fails again is not tried for ever, and is no news.
	failed.due = at(120)
	if _, news := r.set(podNamed("y", failed), 1, map[string]bool{"b": true}); news || len(r.due(at(120))) != 1 {
		t.Errorf("news %t, due %v", news, r.due(at(120)))
	}
}

func TestResultsOfJudgements(t *testing.T) {
	at := func(path string) string { return "as written: " + path }
	now := time.Unix(10, 0)
	got := resultsOf([]stored.Judgement{
		{At: at, Verdict: policies.Verdict{
			Judged:     []string{"a", "b", "c"},
			Violations: []policies.Violation{{Policy: "a", Message: "hm", Action: v1.ActionWarn}, {Policy: "a", Message: "no", Field: "spec.b", Action: v1.ActionDeny}},
			Expiring:   []policies.Expiring{{Policy: "b", Until: time.Unix(99, 0), Reason: "r", Violations: []policies.Violation{{Policy: "b", Message: "no", Action: v1.ActionDeny}}}},
		}},
		{At: at, Verdict: policies.Verdict{
			NotEvaluated: []policies.NotEvaluated{{Policy: "d", Missing: policies.MissingUser}},
			Errors:       []policies.PolicyError{{Policy: "c", Reason: policies.ReasonDeadline, Message: "slow"}, {Policy: "e", Reason: policies.ReasonRuntime, Message: "bad"}},
		}},
	}, now)
	var lines []string
	for _, one := range got {
		line := fmt.Sprintf("%s %s %s", one.policy, one.standing, one.fault)
		for _, violation := range one.violations {
			line += " | " + violation.Path + " " + violation.Message
		}
		if !one.due.IsZero() {
			line += fmt.Sprint(" due ", one.due.Unix())
		}
		lines = append(lines, line)
	}
	want := []string{"a Deny  |  hm | as written: spec.b no", "b Excepted  |  no due 99", "c Failed slow due 70", "d LacksUser ", "e Failed bad"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if worst := got[0].worst(); worst.Message != "no" {
		t.Errorf("worst is %q", worst.Message)
	}
}

func TestContent(t *testing.T) {
	parse := func(text string) map[string]any { return fixtures.Object(t, text).Object }
	pod := parse(`{"metadata":{"name":"a","resourceVersion":"1","labels":{"a":"b","c":"d"}},"spec":{"x":[1,2,{"y":true,"z":null}]},"status":{"phase":"Pending"}}`)
	tests := map[string]struct {
		other      string
		same       bool
		sameStatus bool
	}{
		"the order of members": {`{"status":{"phase":"Pending"},"spec":{"x":[1,2,{"z":null,"y":true}]},"metadata":{"labels":{"c":"d","a":"b"}}}`, true, true},
		"status":               {`{"metadata":{"labels":{"a":"b","c":"d"}},"spec":{"x":[1,2,{"y":true,"z":null}]},"status":{"phase":"Running"}}`, true, false},
		"a label":              {`{"metadata":{"labels":{"a":"d","c":"b"}},"spec":{"x":[1,2,{"y":true,"z":null}]},"status":{"phase":"Pending"}}`, false, false},
		"a finalizer":          {`{"metadata":{"labels":{"a":"b","c":"d"},"finalizers":["x.io/y"]},"spec":{"x":[1,2,{"y":true,"z":null}]},"status":{"phase":"Pending"}}`, false, false},
		"an owner":             {`{"metadata":{"labels":{"a":"b","c":"d"},"ownerReferences":[{"name":"x"}]},"spec":{"x":[1,2,{"y":true,"z":null}]},"status":{"phase":"Pending"}}`, false, false},
		"what others note of it": {
			`{"metadata":{"labels":{"a":"b","c":"d"},"resourceVersion":"7","generation":3,"managedFields":[{"manager":"x"}]},"spec":{"x":[1,2,{"y":true,"z":null}]},"status":{"phase":"Pending"}}`, true, true,
		},
		"the order of elements": {`{"metadata":{"labels":{"a":"b","c":"d"}},"spec":{"x":[2,1,{"y":true,"z":null}]},"status":{"phase":"Pending"}}`, false, false},
		"an empty value":        {`{"metadata":{"labels":{"a":"b","c":"d"}},"spec":{"x":[1,2,{"y":true,"z":{}}]},"status":{"phase":"Pending"}}`, false, false},
		"a type":                {`{"metadata":{"labels":{"a":"b","c":"d"}},"spec":{"x":["1",2,{"y":true,"z":null}]},"status":{"phase":"Pending"}}`, false, false},
	}
	for name, tc := range tests {
		if got := contentOf(pod, false) == contentOf(parse(tc.other), false); got != tc.same {
			t.Errorf("%s: same %t, want %t", name, got, tc.same)
		}
		if got := contentOf(pod, true) == contentOf(parse(tc.other), true); got != tc.sameStatus {
			t.Errorf("%s, with status: same %t, want %t", name, got, tc.sameStatus)
		}
	}
}

func TestKeys(t *testing.T) {
	if got := keyOf("00112233-4455-6677-8899-aabbccddeeff"); fmt.Sprintf("%x", got) != "00112233445566778899aabbccddeeff" {
		t.Errorf("a UUID is not its own key but %x", got)
	}
	if keyOf("a") == keyOf("b") || keyOf("") == keyOf("a") {
		t.Error("two UIDs have one key")
	}
}

// An object that passes all policies takes no more than this many bytes.
func TestMemoryOfAuditResults(t *testing.T) {
	const objects, limit = 100_000, 64
	heap := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heap()
	r := newResults()
	for i := range objects {
		object := podNamed("", says("a", standingPasses, ""), says("b", standingPasses, ""))
		object.uid = uuid.NewUUID()
		r.set(object, uint64(i), nil)
	}
	each := (heap() - before) / objects
	t.Logf("%d bytes an object", each)
	if each > limit {
		t.Errorf("%d bytes an object, want at most %d", each, limit)
	}
	if got := ptr.Deref(r.status("a", 1, nil).Judged, 0); got != objects {
		t.Errorf("judged %d", got)
	}
}
