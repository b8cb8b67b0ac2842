package audit

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/stored"
)

// auditHere is an audit that watches pods by a policy, and has judged one that
// breaks it.
func auditHere(t *testing.T) (*Auditor, *kindWatch) {
	t.Helper()
	a := newAuditor(policies.NewEngine(policies.Options{}), nil, nil, judgeHere())
	w := &kindWatch{Kind: stored.Kind{
		GroupVersionKind: podKind, Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespaced: true,
	}}
	policy := onPods()
	a.policies["a"] = &auditedPolicy{digest: "1", spec: &policy.Spec, generation: 1, kinds: []stored.Kind{w.Kind}, dirty: true}
	a.watches[podKind], a.followed = w, true
	a.results.set(podNamed("x", says("a", denies, "no")), 1, nil)
	return a, w
}

// What cannot be read for a moment is no reason to forget what was judged, nor to
// tell of the rest as if it were all.
func TestFailureOfAudit(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	tests := map[string]struct {
		synced bool
		err    error
		times  int
		// settled tells that the policy is told of, tidy that reports are tidied.
		settled, tidy bool
		wantFault     string
		wantKept      bool
	}{
		"read, and refused by an API server that starts": {synced: true, err: apierrors.NewForbidden(pods, "", errors.New("no")), times: 2, settled: true, tidy: true, wantKept: true},
		"read, and refused for good":                     {synced: true, err: apierrors.NewForbidden(pods, "", errors.New("no")), times: 3, settled: true, tidy: true, wantFault: stored.AggregationLabel},
		"read, and not served any more":                  {synced: true, err: apierrors.NewNotFound(pods, ""), times: 3, settled: true, tidy: true, wantFault: "as soon as it does"},
		"read, and an API server that is away":           {synced: true, err: errors.New("connection refused"), times: 20, settled: true, tidy: true, wantKept: true},
		"not read yet, and refused at first":             {err: apierrors.NewForbidden(pods, "", errors.New("no")), times: 1, wantKept: true},
		"not read yet, and away for a moment":            {err: errors.New("connection refused"), times: 5, wantKept: true},
		"not read yet, and failing for long":             {err: errors.New("conversion fails"), times: 6, settled: true, wantFault: "conversion fails", wantKept: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a, w := auditHere(t)
			w.synced = tc.synced
			for range tc.times {
				if wait := a.failed(t.Context(), w, tc.err); wait < retryDelay || wait > stored.ServedRetry {
					t.Errorf("tries again after %s", wait)
				}
			}
			if got := a.settled("a", a.policies["a"]); got != tc.settled {
				t.Errorf("settled: %t, want %t", got, tc.settled)
			}
			if got := a.allSettled(); got != tc.tidy {
				t.Errorf("all settled: %t, want %t", got, tc.tidy)
			}
			if tc.wantFault == "" != (w.fault == "") || !strings.Contains(w.fault, tc.wantFault) {
				t.Errorf("fault %q, want %q", w.fault, tc.wantFault)
			}
			if got := len(a.results.found) == 1; got != tc.wantKept {
				t.Errorf("kept: %t, want %t", got, tc.wantKept)
			}
		})
	}
}

// Results are told once all objects are judged, and again only if they changed.
func TestPublish(t *testing.T) {
	a, w := auditHere(t)
	a.changed = make(chan event.GenericEvent, 1)
	told := func() int {
		a.publish()
		defer func() {
			for len(a.changed) > 0 {
				<-a.changed
			}
		}()
		return len(a.changed)
	}
	if got := told(); got != 0 {
		t.Error("told before all was judged")
	}
	w.synced = true
	if got := told(); got != 1 {
		t.Error("not told when all was judged")
	}
	policy := &v1.WorkloadPolicy{}
	policy.Name = "a"
	if got, known := a.Result(policy); !known || *got.Violations.Deny != 1 {
		t.Errorf("known %t: %+v", known, got)
	}
	policy.UID = "another"
	if _, known := a.Result(policy); known {
		t.Error("known of another policy of the name")
	}
	if got := told(); got != 0 {
		t.Error("told twice")
	}
	a.policies["a"].dirty = true
	if got := told(); got != 0 {
		t.Error("told although nothing changed")
	}
	a.soil(a.results.drop(podKind, keyOf("x")))
	a.want(w.Kind).all["a"] = true
	if got := told(); got != 0 {
		t.Error("told while a scan is to come")
	}
	scan, of := a.nextScan()
	if scan == nil || of != w {
		t.Fatal("there is no scan")
	}
	if got := told(); got != 0 {
		t.Error("told during a scan")
	}
	a.scanned(scan, nil, a.stored.Clock())
	if got := told(); got != 1 {
		t.Error("not told after a scan")
	}
	// Nobody listens for a moment: it is told later.
	a.policies["a"].dirty = true
	a.results.set(podNamed("x", says("a", denies, "no")), 1, nil)
	a.changed = make(chan event.GenericEvent)
	a.publish()
	a.changed = make(chan event.GenericEvent, 1)
	if got := told(); got != 1 {
		t.Error("what nobody heard is not told again")
	}
}

func TestScansTakeUpWhatIsWanted(t *testing.T) {
	a, w := auditHere(t)
	w.synced = true
	a.want(w.Kind).add("a", "n0")
	a.want(w.Kind).add("b", "n0")
	scan, _ := a.nextScan()
	if len(a.scans) != 0 || !scan.has("a") || !scan.has("b") || scan.has("c") || len(scan.in) != 1 {
		t.Errorf("scan %+v", scan)
	}
	// One that failed is made again, with what was wanted meanwhile.
	a.want(w.Kind).all["a"] = true
	a.scanned(scan, errors.New("connection refused"), a.stored.Clock())
	again, _ := a.nextScan()
	if again == nil || !again.all["a"] || !again.in["n0"]["b"] || again.in["n0"]["a"] {
		t.Errorf("scan %+v", again)
	}
	for i := range maxScanNamespaces + 1 {
		again.add("c", strings.Repeat("n", i+1))
	}
	if !again.all["c"] {
		t.Error("many namespaces are read one by one")
	}
	again.drop("b")
	if again.has("b") {
		t.Error("a policy that is gone judges")
	}
}
