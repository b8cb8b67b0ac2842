package audit

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// Audit tells what an exception lets pass, however far its end is, and from its
// end on that it counts: to the second what penstock check --now says, whose test
// has the same instants.
func TestExceptionsCountUntilTheirEnd(t *testing.T) {
	engine := policies.NewEngine(policies.Options{})
	policy := onPods()
	until := time.Date(2031, 6, 1, 12, 0, 0, 0, time.UTC)
	policy.Spec.Exceptions = []v1.PolicyException{{Namespaces: []string{"team"}, Until: metav1.NewTime(until), Reason: "r"}}
	if err := engine.Set(policy); err != nil {
		t.Fatal(err)
	}
	for now, want := range map[time.Time]standing{
		until.AddDate(-1, 0, 0): standingExcepted, until.Add(-time.Second): standingExcepted, until: denies, until.Add(time.Second): denies,
	} {
		judge := judgeHere()
		judge.Clock = func() time.Time { return now }
		object := fixtures.Object(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"team"}}`)
		got := resultsOf(judge.Judge(t.Context(), engine.Snapshot(), nil, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, object), now)
		if len(got) != 1 || got[0].standing != want || len(got[0].violations) != 1 || (want == standingExcepted && !got[0].due.Equal(until)) {
			t.Errorf("at %s: %+v, want %s", now, got, want)
		}
	}
	only := judgeHere().Judge(t.Context(), engine.Snapshot(), map[string]bool{"b": true}, schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		fixtures.Object(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"team"}}`))
	if got := resultsOf(only, until); len(got) != 0 {
		t.Errorf("a policy that is not asked says %+v", got)
	}
}
