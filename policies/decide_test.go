package policies_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

// users are what a user may be like, the last of them like nobody.
var users = []authenticationv1.UserInfo{
	{Username: "root", Groups: []string{"ops", "system:masters"}},
	{Username: "carl", Groups: []string{"dev"}},
	{Username: "bob"},
	{},
}

// without says what a case finds of an object while the user is not known.
type without struct {
	rego  string
	finds []string
	// open tells that there may be more.
	open bool
}

var withoutUser = map[string]without{
	"a rule beside it": {
		rego: `violation contains "root" if input.object.data.root
violation contains "only ops may delete" if { input.operation == "DELETE"; not "ops" in input.user.groups }`,
		finds: []string{"root"},
	},
	"what is asked first holds": {
		rego: `violation contains "root" if input.object.data.root
violation contains "only ops may create" if { input.operation == "CREATE"; not "ops" in input.user.groups }`,
		finds: []string{"root"}, open: true,
	},
	"the user is asked first": {
		rego: `violation contains "only ops may delete" if { not "ops" in input.user.groups; input.operation == "DELETE" }`,
	},
	"the user is asked by a helper": {
		rego: `violation contains "only ops may delete" if { not is_ops; input.operation == "DELETE" }
violation contains "root" if input.object.data.root
is_ops if "ops" in input.user.groups`,
		finds: []string{"root"},
	},
	"whoever is not allowed": {
		rego: `violation contains "not allowed" if not allowed(input.user)
allowed(user) if user.username == "root"`,
		open: true,
	},
	"whoever is not allowed, of what is there": {
		rego: `violation contains "not allowed" if { input.object.data.root; not allowed(input.user) }
violation contains "not allowed to" if { input.object.data.missing; not allowed(input.user) }
allowed(user) if user.username == "root"`,
		open: true,
	},
	"a message of the user": {
		rego: `violation contains sprintf("%v may not", [input.user.username]) if input.object.data.root
violation contains sprintf("%v may", [input.user.username]) if input.object.data.missing`,
		open: true,
	},
	"a variable of the user": {
		rego: `violation contains msg if { who := input.user.username; msg := sprintf("%v may not", [who]); input.object.data.missing }
violation contains "root" if { keys := object.keys(input.object.data); "root" in keys }`,
		finds: []string{"root"},
	},
	"variables that hang on each other": {
		rego: `violation contains msg if { some g in input.user.groups; parts := split(g, ":"); n := count(parts); n > 3; msg := "deep" }
violation contains msg if { some key, value in input.object.data; key == input.user.username; value == "1"; msg := "own" }
violation contains msg if { some key, value in input.object.data; value == "2"; key == input.user.username; msg := "own" }`,
		open: true,
	},
	"a value that the user is compared to": {
		rego: `violation contains "not yours" if { owner := input.object.data.owner; owner != input.user.username }`,
	},
	"Gatekeeper's review": {
		rego: `violation contains {"msg": "root"} if { not is_update(input.review); input.review.object.data.root }
violation contains {"msg": "whose"} if { is_update(input.review); input.review.userInfo.username != "root" }
is_update(review) if review.operation == "UPDATE"`,
		finds: []string{"root"},
	},
	"the review by another name": {
		rego: `violation contains "root" if { r := input.review; r.object.data.root }
violation contains "whose" if { r := input.review; r.operation == "DELETE"; r.userInfo.username != "root" }`,
		finds: []string{"root"},
	},
	"the whole review": {
		rego: `violation contains "root" if input.object.data.root
violation contains "long" if count(json.marshal(input.review)) > 100000`,
		finds: []string{"root"}, open: true,
	},
	"a helper of which a part needs the user": {
		rego: `violation contains msg if { some msg in problems }
problems contains "root" if input.object.data.root
problems contains "whose" if input.user.username != "root"`,
		open: true,
	},
	"a set that leaves out": {
		rego: `violation contains "root" if count({"root"} - exempt) > 0
exempt contains "root" if "ops" in input.user.groups`,
		open: true,
	},
	"every and comprehensions": {
		rego: `violation contains "all" if { every g in input.user.groups { g != "ops" }; input.object.data.missing }
violation contains "some" if { names := [n | n := input.user.groups[_]]; count(names) > 10; input.object.data.missing }
violation contains "root" if { every key, value in input.object.data { key != value }; count([k | input.object.data[k]]) == 1 }`,
		finds: []string{"root"},
	},
	"the user replaced": {
		rego: `violation contains "root" if { input.object.data.root; not is_ops with input.user as {"groups": ["dev"]} }
violation contains "missing" if { input.object.data.missing; not is_ops }
is_ops if "ops" in input.user.groups`,
		open: true,
	},
	"a boolean": {
		rego: `default deny := false
deny if input.object.data.root
deny if { input.object.data.missing; input.user.username != "root" }`,
		finds: []string{"rule deny holds"},
	},
	"a boolean that is open": {
		rego: `default deny := false
deny if input.object.data.missing
deny if { input.object.data.root; input.user.username != "root" }`,
		open: true,
	},
	"else": {
		rego: `deny if { input.object.data.root; input.user.username != "root" } else := false if input.object.data.root
violation contains "root" if input.object.data.root`,
		finds: []string{"root"}, open: true,
	},
	"else that does not hold": {
		rego: `deny if { input.object.data.missing; input.user.username != "root" } else := true if input.object.data.none
violation contains "root" if input.object.data.root`,
		finds: []string{"root"},
	},
	"a value that is no set": {
		rego: `deny := "whose" if { input.object.data.missing; input.user.username != "root" }
warn := "root" if input.object.data.root`,
		finds: []string{"root"},
	},
	"several rules": {
		rego: `deny contains "root" if input.object.data.root
deny_whose contains "whose" if { input.object.data.missing; input.user.username }
warn contains "whose" if { input.object.data.root; input.user.username }`,
		finds: []string{"root"}, open: true,
	},
	"what conftest's rules find at the top": {
		rego: `deny contains "root" if input.data.root
deny contains "whose" if { input.kind == "Pod"; input.user.username }`,
		finds: []string{"root"},
	},
	"a member that nobody knows": {
		rego: `violation contains "root" if input.object.data.root
violation contains "whose" if { some x in input.parameters.names; input[x].username != "root" }`,
		finds: []string{"root"},
	},
	"many findings": {
		rego: `violation contains sprintf("m%d", [i]) if some i in numbers.range(1, 3)
violation contains "m2" if input.object.data.root
violation contains "whose" if { input.object.data.missing; input.user }`,
		finds: []string{"m1", "m2", "m3"},
	},
}

// TestWithoutTheUser: what a rule finds without the user, it finds whoever that is,
// and where nothing is left open it finds nothing else.
func TestWithoutTheUser(t *testing.T) {
	object := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"root":"1"}}`)
	for name, tc := range withoutUser {
		t.Run(name, func(t *testing.T) {
			p := policy("p", "package p\n"+tc.rego, parameters(`{"names":[]}`))
			engine := engineWith(t, policies.Options{}, p)
			request := createRequest(object)
			request.UserKnown, request.Stored = false, true
			verdict := engine.Snapshot().Judge(t.Context(), request)
			found := foundBy(verdict)
			if len(verdict.Errors) > 0 || !slices.Equal(found, tc.finds) || len(verdict.NotEvaluated) > 0 != tc.open {
				t.Errorf("found %q, open %v, errors %v", found, verdict.NotEvaluated, verdict.Errors)
			}
			for _, user := range users {
				request.UserKnown, request.Stored, request.User = true, false, user
				known := engine.Snapshot().Judge(t.Context(), request)
				if len(known.Errors) > 0 {
					t.Fatal(known.Errors)
				}
				for _, message := range found {
					if !slices.Contains(foundBy(known), message) {
						t.Errorf("found %q, which is not found for %q", message, user.Username)
					}
				}
				if !tc.open && !slices.Equal(found, foundBy(known)) {
					t.Errorf("found %q, and %q for %q, though nothing was open", found, foundBy(known), user.Username)
				}
			}
		})
	}
}

// TestBodiesAreSweptWithoutTheUser puts together bodies of what may be asked, in
// every order of three, and holds what is found without the user to what is found
// with each.
func TestBodiesAreSweptWithoutTheUser(t *testing.T) {
	const helpers = `
is_ops if "ops" in input.user.groups
name := object.get(input.user, "username", "nobody")
who(review) := review.userInfo.username
op(review) := review.operation
keys contains k if some k, _ in input.object.data`
	exprs := []string{
		`x := input.object.data.root`, `x == "1"`, `y := input.user.username`, `count(y) > 3`, `not is_ops`, `some g in input.user.groups`,
		`name != "carl"`, `who(input.review) == "bob"`, `op(input.review) == "CREATE"`, `"root" in keys`, `not input.object.data.missing`, `g != x`,
		`not g == "dev"`, `every k in keys { k != y }`, `count({1 | some k in keys; k == y}) == 0`, `input.operation == "UPDATE"`,
	}
	object := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"root":"1","bob":"2"}}`)
	judged, open := 0, 0
	for i, first := range exprs {
		for j, second := range exprs {
			var rules strings.Builder
			for k, third := range exprs {
				if i != j && j != k && i != k && safe(first, second, third) {
					fmt.Fprintf(&rules, "violation contains \"%d-%d-%d\" if { %s; %s; %s }\n", i, j, k, first, second, third)
				}
			}
			if rules.Len() == 0 || (i+j)%3 != 0 && testing.Short() {
				continue
			}
			p := policy("p", "package p\n"+rules.String()+helpers)
			engine := engineWith(t, policies.Options{}, p)
			request := createRequest(object)
			request.UserKnown, request.Stored = false, true
			verdict := engine.Snapshot().Judge(t.Context(), request)
			found := foundBy(verdict)
			judged, open = judged+1, open+len(verdict.NotEvaluated)
			for _, user := range users {
				request.UserKnown, request.Stored, request.User = true, false, user
				known := foundBy(engine.Snapshot().Judge(t.Context(), request))
				for _, message := range found {
					if !slices.Contains(known, message) {
						t.Errorf("found %s of\n%s, not for %q", message, rules.String(), user.Username)
					}
				}
				if len(verdict.NotEvaluated) == 0 && len(found) != len(known) {
					t.Errorf("found %q, for %q %q, of\n%s", found, user.Username, known, rules.String())
				}
			}
		}
	}
	if judged < 50 || open == 0 || open == judged {
		t.Errorf("of %d policies %d were open: nothing was tried", judged, open)
	}
}

// safe reports whether each variable of expressions is made before it is used.
func safe(exprs ...string) bool {
	all := strings.Join(exprs, "; ")
	for variable, made := range map[*regexp.Regexp]string{
		regexp.MustCompile(`\bx\b`): "x := ", regexp.MustCompile(`\by\b`): "y := ", regexp.MustCompile(`\bg\b`): "some g",
	} {
		if use := variable.FindStringIndex(all); use != nil && (!strings.Contains(all, made) || strings.Index(all, made) > use[0]) {
			return false
		}
	}
	return true
}

// TestWithoutTheInventory: what is found without the objects that are not there
// stands, offline and in a cluster.
func TestWithoutTheInventory(t *testing.T) {
	p := policy("p", `package p
violation contains "root" if input.object.data.root
violation contains "alone" if { input.object.data.alone; count(object.get(data.inventory, "cluster", {})) == 0 }`,
		func(spec *v1.WorkloadPolicySpec) {
			spec.Inventory = []v1.InventoryKind{{APIVersion: "v1", Kind: "Node"}}
		})
	for data, open := range map[string]bool{`{"root":"1"}`: false, `{"root":"1","alone":"1"}`: true} {
		request := createRequest([]byte(`{"apiVersion":"v1","kind":"ConfigMap","data":` + data + `}`))
		verdict := judge(t, p, request)
		if failed := len(verdict.Failed()) > 0; !slices.Equal(foundBy(verdict), []string{"root"}) || failed != open {
			t.Errorf("of %s in a cluster: found %q, failed %v", data, foundBy(verdict), verdict.Failed())
		}
		request.Offline = true
		verdict = judge(t, p, request)
		if left := len(verdict.NotEvaluated) > 0; !slices.Equal(foundBy(verdict), []string{"root"}) || left != open || len(verdict.Errors) > 0 {
			t.Errorf("of %s offline: found %q, not evaluated %v", data, foundBy(verdict), verdict.NotEvaluated)
		}
	}
}

// TestWithoutTheLabels: what a rule finds in a namespace whose labels are not known,
// it finds whatever they are; in a cluster, where they are to be known, it is an error.
func TestWithoutTheLabels(t *testing.T) {
	tests := map[string]without{
		"a rule beside it": {rego: `violation contains "root" if input.object.data.root
violation contains "tier" if { input.object.data.missing; input.namespace.labels.tier == "x" }`, finds: []string{"root"}},
		"where it depends": {rego: `violation contains "root" if input.object.data.root
violation contains "tier" if input.namespace.labels.tier == "x"`, finds: []string{"root"}, open: true},
		"what is not there": {rego: `violation contains "owner" if not input.namespace.labels.owner`, open: true},
		"by a helper": {rego: `violation contains "root" if { input.object.data.root; input.namespace.name == "team" }
violation contains "tier" if { tier == "x"; input.object.data.missing }
tier := object.get(input.namespace, ["labels", "tier"], "none")`, finds: []string{"root"}},
		"Gatekeeper's review": {rego: `violation contains {"msg": "root"} if input.review.object.data.root
violation contains {"msg": "tier"} if input.review.namespaceObject.metadata.labels.tier == "x"`, finds: []string{"root"}, open: true},
		"its name, as a label": {rego: `violation contains "root" if input.object.data.root
violation contains "name" if input.namespace.labels["kubernetes.io/metadata.name"] != "team"`, finds: []string{"root"}, open: true},
		"beside the user": {rego: `violation contains "root" if input.object.data.root
violation contains "tier" if { input.user.username == "bob"; not input.namespace.labels.tier }`, finds: []string{"root"}, open: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			engine := engineWith(t, policies.Options{}, policy("p", "package p\n"+tc.rego))
			request := createRequest([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"root":"1"}}`))
			request.Offline, request.UserKnown, request.NamespaceLabels = true, false, nil
			verdict := engine.Snapshot().Judge(t.Context(), request)
			found := foundBy(verdict)
			if len(verdict.Errors) > 0 || !slices.Equal(found, tc.finds) || len(verdict.NotEvaluated) > 0 != tc.open {
				t.Errorf("found %q, open %v, errors %v", found, verdict.NotEvaluated, verdict.Errors)
			}
			if tc.open && verdict.NotEvaluated[0].Missing != policies.MissingNamespaceLabels {
				t.Errorf("%s is missing", verdict.NotEvaluated[0].Missing)
			}
			request.UserKnown = true
			for _, labels := range []map[string]string{nil, {"tier": "x"}, {"tier": "y", "owner": "o"}} {
				request.NamespaceLabels = func() (map[string]string, error) {
					return labels, nil
				}
				known := engine.Snapshot().Judge(t.Context(), request)
				for _, message := range found {
					if !slices.Contains(foundBy(known), message) {
						t.Errorf("found %q, which is not found in a namespace labelled %v", message, labels)
					}
				}
				if !tc.open && !slices.Equal(found, foundBy(known)) {
					t.Errorf("found %q, and %q in a namespace labelled %v", found, foundBy(known), labels)
				}
			}
			request.Offline, request.NamespaceLabels = false, func() (map[string]string, error) { return nil, errors.New("gone") }
			verdict = engine.Snapshot().Judge(t.Context(), request)
			if len(verdict.Errors) != 1 || verdict.Errors[0].Reason != policies.ReasonNamespace || len(verdict.Violations) > 0 {
				t.Errorf("in a cluster: %+v", verdict)
			}
		})
	}
}

// TestPartlyJudged tells a policy of which something is known from one of which
// nothing is.
func TestPartlyJudged(t *testing.T) {
	for rego, partly := range map[string]bool{
		`violation contains "whose" if input.user.username != "root"`: false,
		`violation contains "whose" if input.user.username != "root"
violation contains "missing" if input.object.data.missing`: true,
	} {
		request := createRequest([]byte(`{"data":{}}`))
		request.UserKnown = false
		verdict := judge(t, policy("p", "package p\n"+rego), request)
		if len(verdict.NotEvaluated) != 1 || verdict.NotEvaluated[0].Partly != partly || len(verdict.Judged) > 0 != partly {
			t.Errorf("of %s: not evaluated %v, judged %v", rego, verdict.NotEvaluated, verdict.Judged)
		}
	}
}

func foundBy(verdict policies.Verdict) []string {
	var found []string
	for _, violation := range verdict.Violations {
		found = append(found, violation.Message)
	}
	slices.Sort(found)
	return found
}
