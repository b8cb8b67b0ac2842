package policies_test

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/webhooks/fields"
)

func TestRatchet(t *testing.T) {
	const (
		// perRole reports the role at fault.
		perRole = `package p
violation contains {"msg": sprintf("%v is too many", [r.replicas]), "field": sprintf("spec.roles[%d].replicas", [i])} if {
  some i, r in input.object.spec.roles
  r.replicas > 4
}`
		// total reports a sum at the first role.
		total = `package p
violation contains {"msg": sprintf("%v in total", [n]), "field": "spec.roles[0].replicas"} if {
  n := sum([r.replicas | some r in input.object.spec.roles])
  n > 4
}`
		// nowhere names no field.
		nowhere = `package p
violation contains "too many" if { some r in input.object.spec.roles; r.replicas > 4 }`
		labels = `package p
violation contains {"msg": sprintf("labels are missing: %v", [missing]), "field": "metadata.labels"} if {
  missing := {"team", "owner"} - object.keys(object.get(input.object.metadata, "labels", {}))
  count(missing) > 0
}`
		labelsNowhere = `package p
violation contains sprintf("labels are missing: %v", [missing]) if {
  missing := {"team", "owner"} - object.keys(object.get(input.object.metadata, "labels", {}))
  count(missing) > 0
}`
		immutable = `package p
violation contains {"msg": "framework cannot change", "field": "spec.framework"} if input.object.spec.framework != input.oldObject.spec.framework`
		age = `package p
violation contains {"msg": sprintf("older than allowed by %v", [input.object.metadata.annotations.age]), "field": "spec.roles"} if true`
		absent = `package p
violation contains {"msg": "no backoff limit", "field": "spec.runPolicy.backoffLimit"} if not input.object.spec.runPolicy.backoffLimit`
	)
	tests := map[string]struct {
		rego     string
		old, new string
		denied   bool
	}{
		"the fault is untouched": {perRole, `{"spec":{"roles":[{"replicas":9}]}}`, `{"spec":{"roles":[{"replicas":9}],"runPolicy":{}}}`, false},
		"the fault is new":       {perRole, `{"spec":{"roles":[{"replicas":1}]}}`, `{"spec":{"roles":[{"replicas":9}]}}`, true},
		"the fault has grown":    {perRole, `{"spec":{"roles":[{"replicas":9}]}}`, `{"spec":{"roles":[{"replicas":10}]}}`, true},
		"the fault has shrunk and is still one": {
			perRole, `{"spec":{"roles":[{"replicas":9}]}}`, `{"spec":{"roles":[{"replicas":8}]}}`, true,
		},
		"another fault beside an old one": {
			perRole, `{"spec":{"roles":[{"replicas":9},{"replicas":1}]}}`, `{"spec":{"roles":[{"replicas":9},{"replicas":9}]}}`, true,
		},
		"an equal number in another spelling is unchanged": {
			perRole, `{"spec":{"roles":[{"replicas":9}]}}`, `{"spec":{"roles":[{"replicas":9.0}]}}`, false,
		},
		"a role is added before the one with the fault": {
			perRole, `{"spec":{"roles":[{"name":"Worker","replicas":9}]}}`, `{"spec":{"roles":[{"name":"Master","replicas":1},{"name":"Worker","replicas":9}]}}`, false,
		},
		"a role before the one with the fault is removed": {
			perRole, `{"spec":{"roles":[{"name":"Master","replicas":1},{"name":"Worker","replicas":9}]}}`, `{"spec":{"roles":[{"name":"Worker","replicas":9}]}}`, false,
		},
		"roles in another order": {
			perRole, `{"spec":{"roles":[{"name":"Master","replicas":9},{"name":"Worker","replicas":7}]}}`, `{"spec":{"roles":[{"name":"Worker","replicas":7},{"name":"Master","replicas":9}]}}`, false,
		},
		"a role with the same fault is added before": {
			perRole, `{"spec":{"roles":[{"name":"Worker","replicas":9}]}}`, `{"spec":{"roles":[{"name":"Master","replicas":9},{"name":"Worker","replicas":9}]}}`, true,
		},
		"another role takes the place and the fault": {
			perRole, `{"spec":{"roles":[{"name":"Worker","replicas":9}]}}`, `{"spec":{"roles":[{"name":"Master","replicas":9}]}}`, true,
		},
		"a role is added, and the fault grows": {
			perRole, `{"spec":{"roles":[{"name":"Worker","replicas":9}]}}`, `{"spec":{"roles":[{"name":"Master","replicas":1},{"name":"Worker","replicas":10}]}}`, true,
		},
		"names that tell nothing apart": {
			perRole, `{"spec":{"roles":[{"name":"Worker","replicas":9}]}}`, `{"spec":{"roles":[{"name":"Worker","replicas":1},{"name":"Worker","replicas":9}]}}`, true,
		},
		"a total grows at another role": {
			total, `{"spec":{"roles":[{"replicas":3},{"replicas":3}]}}`, `{"spec":{"roles":[{"replicas":3},{"replicas":4}]}}`, true,
		},
		"a total grows at the role that is reported": {
			total, `{"spec":{"roles":[{"replicas":3},{"replicas":3}]}}`, `{"spec":{"roles":[{"replicas":4},{"replicas":3}]}}`, true,
		},
		"a total grows by a role that is added": {
			total, `{"spec":{"roles":[{"replicas":6}]}}`, `{"spec":{"roles":[{"replicas":6},{"replicas":1}]}}`, true,
		},
		"a total shrinks at another role and is still too much": {
			total, `{"spec":{"roles":[{"replicas":5},{"replicas":5}]}}`, `{"spec":{"roles":[{"replicas":5},{"replicas":4}]}}`, true,
		},
		"a total stays while another role is edited": {
			total, `{"spec":{"roles":[{"replicas":3},{"replicas":3,"image":"a"}]}}`, `{"spec":{"roles":[{"replicas":3},{"replicas":3,"image":"b"}]}}`, false,
		},
		"a total stays, moved between roles other than the reported": {
			total, `{"spec":{"roles":[{"replicas":3},{"replicas":3},{"replicas":1}]}}`, `{"spec":{"roles":[{"replicas":3},{"replicas":1},{"replicas":3}]}}`, false,
		},
		"a total stays, moved from the reported role": {
			total, `{"spec":{"roles":[{"replicas":3},{"replicas":3}]}}`, `{"spec":{"roles":[{"replicas":2},{"replicas":4}]}}`, true,
		},
		"a total stays": {
			total, `{"spec":{"roles":[{"replicas":3},{"replicas":3}]}}`, `{"spec":{"roles":[{"replicas":3},{"replicas":3}]},"metadata":{"labels":{"a":"b"}}}`, false,
		},
		"no field, and the spec is unchanged": {
			nowhere, `{"spec":{"roles":[{"replicas":9}]}}`, `{"spec":{"roles":[{"replicas":9}]},"metadata":{"finalizers":["a"]},"status":{"phase":"Running"}}`, false,
		},
		"no field, and anything in the spec has changed": {
			nowhere, `{"spec":{"roles":[{"replicas":9}]}}`, `{"spec":{"roles":[{"replicas":9}],"framework":"JAX"}}`, true,
		},
		"the rule is about metadata, which is unchanged": {
			labels, `{"metadata":{"labels":{"team":"a"}},"spec":{"a":1}}`, `{"metadata":{"labels":{"team":"a"}},"spec":{"a":2}}`, false,
		},
		"a label more is missing while the spec is unchanged": {
			labels, `{"metadata":{"labels":{"team":"a"}},"spec":{}}`, `{"metadata":{"labels":{}},"spec":{}}`, true,
		},
		"a label more is missing and the rule names no field": {
			labelsNowhere, `{"metadata":{"labels":{"team":"a"}},"spec":{}}`, `{"metadata":{},"spec":{}}`, true,
		},
		"a rule on the change itself": {
			immutable, `{"spec":{"framework":"JAX"}}`, `{"spec":{"framework":"MPI"}}`, true,
		},
		"the message changes with something else, and the spec is unchanged": {
			age, `{"metadata":{"annotations":{"age":"1"}},"spec":{"roles":[]}}`, `{"metadata":{"annotations":{"age":"2"}},"spec":{"roles":[]}}`, true,
		},
		"the field is absent in both": {
			absent, `{"spec":{"a":1}}`, `{"spec":{"a":2}}`, false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			verdict := judge(t, policy("p", tc.rego), updateRequest([]byte(tc.old), []byte(tc.new)))
			if len(verdict.Errors) > 0 {
				t.Fatal(verdict.Errors)
			}
			if got := !verdict.Allowed(); got != tc.denied {
				t.Errorf("denied is %t, want %t: violations %v, tolerated %v", got, tc.denied, verdict.Violations, verdict.Tolerated)
			}
			if !tc.denied && len(verdict.Tolerated) == 0 {
				t.Error("the fault is not told among the tolerated ones")
			}
			if tc.denied {
				return
			}
			// What an update may leave, a creation may not bring.
			created := judge(t, policy("p", tc.rego), createRequest([]byte(tc.new)))
			if created.Allowed() {
				t.Error("a creation is tolerated too")
			}
		})
	}
}

// A field that cannot be where the fault is stays as it is whatever is written:
// it must not let updates pass. One that may be absent must, or nobody could
// resume an old job.
func TestRatchetOfFieldsThatAreAbsent(t *testing.T) {
	const (
		// images names its faults at a field that the test puts in.
		images = `package p
violation contains {"msg": "comes from elsewhere", "field": "FIELD"} if {
  some c in input.object.spec.template.spec.containers
  not startswith(c.image, "ours/")
}`
		// lost reads objects in a way that is not followed.
		lost = `package p
violation contains {"msg": "comes from elsewhere", "field": "FIELD"} if {
  walk(input.object, [path, value])
  path[count(path) - 1] == "image"
  not startswith(value, "ours/")
}`
		data = `package p
violation contains {"msg": "is too long", "field": "FIELD"} if count(input.object.data.k) > 3`
		owner = `package p
violation contains {"msg": "has no owner", "field": "metadata.labels[owner]"} if {
  not input.object.metadata.labels.owner
  some c in input.object.spec.template.spec.containers
  c.image
}`
		required = `package p
violation contains {"msg": sprintf("lacks %v", [missing]), "field": "metadata.labels[owner]", "details": {"of": input.object.spec.replicas}} if {
  provided := {label | input.review.object.metadata.labels[label]}
  missing := {"owner"} - provided
  count(missing) > 0
}`
		backoff = `package p
import data.penstock.workload
violation contains {"msg": "has no backoff limit", "field": "spec.runPolicy.backoffLimit"} if {
  count(workload.containers) > 0
  not input.object.spec.runPolicy.backoffLimit
}`
		// pods is what rules do that were written for pods and templates alike.
		pods = `package p
bad contains c if { some c in input.object.spec.containers; not startswith(c.image, "ours/") }
bad contains c if { some c in input.object.spec.template.spec.containers; not startswith(c.image, "ours/") }
violation contains {"msg": "comes from elsewhere", "field": "spec.containers"} if count(bad) > 0`

		author = `package p
violation contains "only admins may change it" if { input.object.data.k; object.get(input.user, "username", "") != "root" }`

		deployment = `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":1,"template":{"spec":{"containers":[{"image":"a"}]}}}}`
		scaled     = `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":2,"template":{"spec":{"containers":[{"image":"a"}]}}}}`
		worse      = `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":1,"template":{"spec":{"containers":[{"image":"b"}]}}}}`
		labelled   = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"labels":{"a":"b"}},"spec":{"replicas":1,"template":{"spec":{"containers":[{"image":"b"}]}}}}`
		annotated  = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"a":"b"}},"spec":{"replicas":1,"template":{"spec":{"containers":[{"image":"a"}]}}}}`
		suspended  = `{"apiVersion":"penstock.dev/v1","kind":"TrainingJob","spec":{"runPolicy":{"suspend":true},"roles":[{"name":"Worker","template":{"spec":{"containers":[{"name":"a"}]}}}]}}`
		resumed    = `{"apiVersion":"penstock.dev/v1","kind":"TrainingJob","spec":{"runPolicy":{"suspend":false},"roles":[{"name":"Worker","template":{"spec":{"nodeSelector":{"a":"b"},"containers":[{"name":"a"}]}}}]}}`
		config     = `{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"long"}}`
		longer     = `{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"longer"}}`
	)
	var (
		deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
		configMaps  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
		jobs        = schema.GroupVersionKind{Group: "penstock.dev", Version: "v1", Kind: "TrainingJob"}
		widgets     = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	)
	tests := map[string]struct {
		kind     schema.GroupVersionKind
		rego     string
		field    string
		old, new string
		denied   bool
	}{
		"the kind has no such field":                     {deployments, images, "spec.containers", deployment, worse, true},
		"the kind has no such field, and the spec stays": {deployments, images, "spec.containers", deployment, annotated, false},
		"the rule reads the field of other kinds":        {deployments, pods, "", deployment, worse, true},
		"the field itself, which stays":                  {deployments, images, "spec.template.spec.containers", deployment, scaled, false},
		"a rule on who may change it":                    {configMaps, author, "", config, longer, true},
		"a misspelt key":                                 {configMaps, data, "data.kk", config, longer, true},
		"the key":                                        {configMaps, data, "data.k", config, longer, true},
		"no path":                                        {configMaps, data, "$.garbage[[", config, longer, true},
		"no path either":                                 {configMaps, data, "the data", config, longer, true},
		"a bracket in front":                             {configMaps, data, "[0].data", config, longer, true},
		"a field that the rule does not read":            {configMaps, data, "metadata.name", config, longer, true},
		"a field of a kind that nobody knows":            {widgets, images, "spec.containers", deployment, worse, true},
		"and which the rule does not tell of":            {widgets, lost, "spec.containers", deployment, worse, true},
		"the rule does not tell what it reads":           {deployments, lost, "spec.containers", deployment, worse, true},
		"a label that is not there":                      {deployments, owner, "", deployment, labelled, false},
		"a label that is not there, of who knows what":   {widgets, owner, "", deployment, labelled, false},
		"a label that is required":                       {deployments, required, "", deployment, labelled, false},
		"the details tell of growth":                     {deployments, required, "", deployment, scaled, true},
		"a job is resumed":                               {jobs, backoff, "", suspended, resumed, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			request := updateRequest([]byte(tc.old), []byte(tc.new))
			request.Fields = fields.Of(tc.kind)
			verdict := judge(t, policy("p", strings.ReplaceAll(tc.rego, "FIELD", tc.field)), request)
			if len(verdict.Errors) > 0 || len(verdict.Violations)+len(verdict.Tolerated) == 0 {
				t.Fatalf("got %+v", verdict)
			}
			if got := !verdict.Allowed(); got != tc.denied {
				t.Errorf("denied is %t, want %t: violations %v, tolerated %v", got, tc.denied, verdict.Violations, verdict.Tolerated)
			}
		})
	}
}

func TestRatchetUsesTheParametersOfToday(t *testing.T) {
	p := policy("p", `package p
violation contains {"msg": sprintf("at most %v", [input.parameters.max]), "field": "spec.n"} if input.object.spec.n > input.parameters.max`,
		parameters(`{"max": 2}`))
	verdict := judge(t, p, updateRequest([]byte(`{"spec":{"n":3}}`), []byte(`{"spec":{"n":3,"m":1}}`)))
	if !verdict.Allowed() {
		t.Errorf("a stricter parameter refuses what is stored: %v", verdict.Violations)
	}
}

// TestRatchetOfTheWrite: what a rule finds of who writes, or of the change, is no
// fault that the stored object has, however little an update touches.
func TestRatchetOfTheWrite(t *testing.T) {
	const (
		owner = `package p
violation contains {"msg": sprintf("is %s's; %s may not write it", [o, input.user.username]), "field": "metadata.labels.owner"} if {
  o := input.object.metadata.labels.owner
  o != input.user.username
}`
		reviewed = `package p
violation contains {"msg": "is somebody else's", "field": "metadata.labels.owner"} if input.object.metadata.labels.owner != input.review.userInfo.username`
		frozen = `package p
violation contains {"msg": "is frozen", "field": "metadata.labels.owner"} if {
  input.object.metadata.labels.owner == "bob"
  input.oldObject.metadata.labels.owner == "bob"
}`
		updates = `package p
violation contains {"msg": "is never updated", "field": "metadata.labels.owner"} if input.review.operation == "UPDATE"`
		// admins is about the label alone, which the update leaves.
		admins = `package p
violation contains {"msg": "is for admins to set", "field": "metadata.labels.owner"} if {
  input.object.metadata.labels.owner
  not is_admin
}
is_admin if input.user.username == "root"`
		stored = `package p
violation contains {"msg": "must not be bob's", "field": "metadata.labels.owner"} if {
  input.review.operation in {"CREATE", "UPDATE"}
  input.object.metadata.labels.owner == "bob"
}`
	)
	frozenFor := func(condition string) string {
		return `package p
violation contains {"msg": "is frozen", "field": "metadata.labels.owner"} if {
  input.object.metadata.labels.owner
  ` + condition + `
}`
	}
	const old = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"labels":{"owner":"bob"}},"data":{"a":"1"}}`
	const updated = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"labels":{"owner":"bob"}},"data":{"a":"2"}}`
	onUpdates := func(p *v1.WorkloadPolicySpec) { p.Match.Operations = []v1.PolicyOperation{v1.OperationUpdate} }
	for name, tc := range map[string]struct {
		rego   string
		mods   []func(*v1.WorkloadPolicySpec)
		denied bool
	}{
		"who writes":                             {owner, nil, true},
		"who writes, in the review":              {reviewed, nil, true},
		"the change":                             {frozen, nil, true},
		"the change, of updates alone":           {frozen, []func(*v1.WorkloadPolicySpec){onUpdates}, true},
		"that it is an update":                   {updates, nil, true},
		"who writes, by what does not hold":      {admins, nil, true},
		"who writes, by a group that is lacking": {frozenFor(`not "platform" in input.user.groups`), nil, true},
		"who writes, by a review's":              {frozenFor(`not input.review.userInfo.username == "root"`), nil, true},
		"the change, by what does not hold":      {frozenFor(`not input.oldObject.data == input.object.data`), []func(*v1.WorkloadPolicySpec){onUpdates}, true},
		"the change, by object.get":              {frozenFor(`object.get(input, ["oldObject", "data"], {}) != input.object.data`), []func(*v1.WorkloadPolicySpec){onUpdates}, true},
		"the change, by a review that is handed": {frozenFor("changed(input.review)") + "\nchanged(review) if not review.oldObject.data == review.object.data", nil, true},
		"creations are spared":                   {frozenFor("not is_update(input.review)") + "\nis_update(review) if review.operation == \"UPDATE\"", nil, false},
		"all of the input is walked": {`package p
violation contains {"msg": "is bob's", "field": "metadata.labels.owner"} if {
  walk(input, [_, value])
  value == "bob"
}`, nil, false},
		"a fault of the object":                  {stored, nil, false},
		"a fault of the object, on updates only": {stored, []func(*v1.WorkloadPolicySpec){onUpdates}, false},
	} {
		request := updateRequest([]byte(old), []byte(updated))
		request.User.Username, request.User.Groups, request.UserKnown = "carl", []string{"guests"}, true
		verdict := judge(t, policy("p", tc.rego, tc.mods...), request)
		if len(verdict.Errors) > 0 || !verdict.Allowed() != tc.denied {
			t.Errorf("%s: denied is %t, want %t: %+v", name, !verdict.Allowed(), tc.denied, verdict)
		}
	}
}

// TestRatchetOfWhatWasExempt: an object that loses its exemption has to conform.
func TestRatchetOfWhatWasExempt(t *testing.T) {
	const rego = `package p
violation contains {"msg": "must be small", "field": "data.size"} if input.object.data.size == "large"`
	selecting := func(p *v1.WorkloadPolicySpec) {
		p.Match.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "exempt", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	}
	conditional := func(p *v1.WorkloadPolicySpec) {
		p.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "not-exempt", Expression: "!('exempt' in object.metadata.?labels.orValue({}))"}}
	}
	object := func(labels, other string) []byte {
		return []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"labels":{` + labels + `}},"data":{"size":"large","other":"` + other + `"}}`)
	}
	for name, tc := range map[string]struct {
		mod        func(*v1.WorkloadPolicySpec)
		old        string
		heldBefore func([]admissionregistrationv1.MatchCondition) bool
		denied     bool
	}{
		"it was never exempt":                   {selecting, "", nil, false},
		"it was, by its labels":                 {selecting, `"exempt":"yes"`, nil, true},
		"it was never, by conditions":           {conditional, "", func([]admissionregistrationv1.MatchCondition) bool { return true }, false},
		"it was, by conditions":                 {conditional, `"exempt":"yes"`, func([]admissionregistrationv1.MatchCondition) bool { return false }, true},
		"nobody knows what conditions say":      {conditional, "", nil, false},
		"conditions, of a policy that has none": {func(*v1.WorkloadPolicySpec) {}, "", func([]admissionregistrationv1.MatchCondition) bool { return false }, false},
	} {
		request := updateRequest(object(tc.old, "1"), object("", "2"))
		request.Scope.HeldBefore = tc.heldBefore
		request.Scope.Holds = func([]admissionregistrationv1.MatchCondition) (bool, error) { return true, nil }
		verdict := judge(t, policy("p", rego, tc.mod), request)
		if len(verdict.Errors) > 0 || !verdict.Allowed() != tc.denied {
			t.Errorf("%s: denied is %t, want %t: %+v", name, !verdict.Allowed(), tc.denied, verdict)
		}
	}
}

// TestRatchetOfMany: what is not said because there is too much counts all the same.
func TestRatchetOfMany(t *testing.T) {
	const rego = `package p
violation contains {"msg": sprintf("key %s", [k]), "field": sprintf("data[%s]", [k])} if {
  some k, _ in input.object.data
  startswith(k, "bad")
}
warn contains sprintf("key %s", [k]) if {
  some k, _ in input.object.data
  startswith(k, "odd")
}`
	object := func(name string, n int, more ...string) []byte {
		var keys []string
		for i := range n {
			keys = append(keys, fmt.Sprintf(`"%s%04d":"1"`, name, i))
		}
		return []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{},"data":{` + strings.Join(append(keys, more...), ",") + `}}`)
	}
	const another = `"badzzz":"1"`
	for name, tc := range map[string]struct {
		old, new          []byte
		denied, tolerated int
	}{
		"as many as are said":       {object("bad", 100), object("bad", 100, another), 1, 100},
		"more":                      {object("bad", 150), object("bad", 150, another), 1, 100},
		"more, and none is new":     {object("bad", 150), object("bad", 150, `"good":"1"`), 0, 100},
		"too many to compare":       {object("bad", 1001), object("bad", 1001, `"good":"1"`), 100, 0},
		"warnings before a refusal": {object("odd", 0), object("odd", 150, another), 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			verdict := judge(t, policy("p", rego), updateRequest(tc.old, tc.new))
			if len(verdict.Errors) > 0 || len(verdict.Denied()) != tc.denied || len(verdict.Tolerated) != tc.tolerated {
				t.Errorf("denied %d, tolerated %d, errors %v", len(verdict.Denied()), len(verdict.Tolerated), verdict.Errors)
			}
		})
	}
}

// TestRatchetOfTotals: a total that grows is new wherever it is reported, however
// long its message is, and whatever it grows by.
func TestRatchetOfTotals(t *testing.T) {
	const shares = `package p
violation contains {"msg": sprintf("asks for %d", [total]), "field": "spec.replicas"} if {
  total := input.object.spec.replicas * to_number(input.object.metadata.annotations.shares)
  total > 4
}`
	const long = `package p
violation contains {"msg": sprintf("%s: %d in all", [concat(",", [n | some n in input.object.spec.names]), sum(input.object.spec.counts)]), "field": "spec.names"} if {
  sum(input.object.spec.counts) > 4
}`
	const operation = `package p
violation contains {"msg": sprintf("%s of %d replicas", [input.operation, input.object.spec.replicas]), "field": "spec.replicas"} if input.object.spec.replicas > 1`
	scaled := func(replicas, shares string) []byte {
		return []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"shares":"` + shares + `"}},"spec":{"replicas":` + replicas + `}}`)
	}
	names := `"` + strings.Repeat("n", 3000) + `"`
	counted := func(count string) []byte {
		return []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{},"spec":{"names":[` + names + `],"counts":[` + count + `]}}`)
	}
	for name, tc := range map[string]struct {
		rego     string
		old, new []byte
		denied   bool
	}{
		"it grows by metadata":                      {shares, scaled("2", "5"), scaled("2", "500"), true},
		"it stays":                                  {shares, scaled("2", "5"), scaled("2", "5.0"), false},
		"it grows past what is shown":               {long, counted("60"), counted("559"), true},
		"it stays past what is shown":               {long, counted("60"), counted("30, 30"), false},
		"the message names the operation":           {operation, scaled("2", "1"), scaled("2", "2"), false},
		"the message names the operation and grows": {operation, scaled("2", "1"), scaled("3", "1"), true},
	} {
		t.Run(name, func(t *testing.T) {
			verdict := judge(t, policy("p", tc.rego), updateRequest(tc.old, tc.new))
			if len(verdict.Errors) > 0 || !verdict.Allowed() != tc.denied {
				t.Errorf("denied is %t, want %t: %+v", !verdict.Allowed(), tc.denied, verdict)
			}
		})
	}
}

// TestRatchetOfMetadata: rules without a field, as Gatekeeper's are, may be about
// labels and annotations.
func TestRatchetOfMetadata(t *testing.T) {
	const snippet = `package p
violation contains {"msg": "snippets are not allowed"} if input.review.object.metadata.annotations["example.com/snippet"]`
	const required = `package p
violation contains {"msg": sprintf("lacks %v", [missing])} if {
  given := {l | some l, _ in input.review.object.metadata.labels}
  missing := {"owner"} - given
  count(missing) > 0
}`
	object := func(metadata string) []byte {
		return []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{` + metadata + `},"spec":{"a":1}}`)
	}
	annotated := func(snippet, other string) []byte {
		return object(`"annotations":{"example.com/snippet":"` + snippet + `","other":"` + other + `"}`)
	}
	for name, tc := range map[string]struct {
		rego     string
		old, new []byte
		denied   bool
	}{
		"what the rule names changes":     {snippet, annotated("a", ""), annotated("b", ""), true},
		"another annotation changes":      {snippet, annotated("a", "1"), annotated("a", "2"), false},
		"any label, of which none is new": {required, object(`"labels":{"a":"1"}`), object(`"labels":{"a":"2","b":"1"}`), false},
	} {
		t.Run(name, func(t *testing.T) {
			verdict := judge(t, policy("p", tc.rego), updateRequest(tc.old, tc.new))
			if len(verdict.Errors) > 0 || !verdict.Allowed() != tc.denied {
				t.Errorf("denied is %t, want %t: %+v", !verdict.Allowed(), tc.denied, verdict)
			}
		})
	}
}
