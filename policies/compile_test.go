package policies_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/library"
)

func TestCompile(t *testing.T) {
	tests := map[string]struct {
		policy *v1.WorkloadPolicy
		want   []string // the lines of the error
	}{
		"Rego v1": {
			policy: policy("p", "package p\nviolation contains \"x\" if input.object"),
		},
		"Rego v0, as in Gatekeeper templates": {
			policy: policy("p", "package k8srequired\nviolation[{\"msg\": msg}] { not input.review.object.metadata.labels.team\n msg := \"label team is missing\" }"),
		},
		"an object in place of a set": {
			policy: policy("p", "package p\nimport rego.v1\nviolation[msg] if { input.object.a; msg := \"x\" }\ndeny[\"a\"] if input.object.b"),
			want: []string{
				"spec.rego: 3:1: rego_compile_error: violation makes an object, whose members are no violations: write violation contains msg if {…}",
				"spec.rego: 4:1: rego_compile_error: deny makes an object, whose members are no violations: write deny contains \"a\" if {…}",
			},
		},
		"sets in an object": {
			policy: policy("p", "package p\nviolation.a contains \"x\" if input.object.a"),
			want:   []string{"spec.rego: 2:1: rego_compile_error: violation makes an object of sets: write violation contains … if {…}"},
		},
		"what is no message": {
			policy: policy("p", "package p\nviolation contains 5 if input.object.a"),
			want:   []string{"spec.rego: 2:1: rego_compile_error: violation contains 5, and what it contains has to be a message, or an object with msg, field and fix"},
		},
		"helpers of any shape": {
			policy: policy("p", "package p\nviolation contains \"x\" if deny_a(input.object)\ndeny_a(x) if x.a\nwarn_b[x] := 1 if some x in [1]"),
		},
		"Rego v0 with keywords of the future, and what v1 has no more": {
			policy: policy("p", "package p\nimport future.keywords\nviolation contains {\"msg\": \"x\"} if {\n  any([input.review.object.spec.replicas > 1, false])\n  re_match(\"a\", \"a\")\n}"),
		},
		"Rego v1 with a needless import": {
			policy: policy("p", "package p\nimport future.keywords.in\nviolation contains \"x\" if 1 in input.object.list"),
		},
		"a fault of Rego v0": {
			policy: policy("p", "package p\nviolation[{\"msg\": \"a\"}] {\n  some i in input.object.list\n  input.object.spec.replicas > 1\n}"),
			want:   []string{"spec.rego: 3:10: rego_parse_error: unexpected identifier token: expected \\n or ; or } (hint: `import future.keywords.in` for `some x in xs` expressions)"},
		},
		"rules of conftest": {
			policy: policy("p", "package main\ndeny contains \"a\" if input.kind == \"TrainingJob\"\nwarn contains \"b\" if input.spec"),
		},
		"the shared library from Rego v0": {
			policy: policy("p", "package p\nimport data.penstock.workload\nviolation[x] { x := workload.roles[_].name }"),
		},
		"libs of either version": {
			policy: policy("p", "package p\nimport data.lib.a\nviolation contains msg if msg := a.f(input.object)", libs(
				"package lib.a\nimport data.lib.b.c\nf(x) = y { y := c.g(x) }", "package lib.b.c\ng(x) := x.name if true")),
		},
		"faults of libs have their place": {
			policy: policy("p", "package p\nviolation contains x if true", libs("package lib.a\n\nf(x) := y if true\n")),
			want: []string{
				"spec.rego: 2:20: rego_unsafe_var_error: var x is unsafe",
				"spec.libs[0]: 3:9: rego_unsafe_var_error: var y is unsafe",
			},
		},
		"libs stay below lib": {
			policy: policy("p", "package p\nviolation contains \"x\" if data.lib.a.y", libs("package p\nviolation contains 1 if true", "package lib.a\ny := }", "package lib\n")),
			want: []string{
				"spec.libs[0]: 1:1: rego_compile_error: package p is not below lib: call it lib.p",
				"spec.libs[1]: 2:6: rego_parse_error: unexpected } token",
				"spec.libs[1]: 2:6: rego_parse_error: unexpected } token: expected rule value term",
				"spec.libs[2]: 1:1: rego_compile_error: package lib is not below lib: call it lib.lib",
			},
		},
		"a builtin is forbidden in libs, too": {
			policy: policy("p", "package p\nviolation contains \"x\" if data.lib.a.y", libs("package lib.a\ny if opa.runtime()")),
			want:   []string{"spec.libs[0]: 2:6: rego_type_error: builtin opa.runtime is not allowed in a policy"},
		},
		"a rule that needs itself": {
			policy: policy("p", "package p\nviolation contains \"x\" if f(3)\nf(x) if g(x - 1)\ng(x) if f(x - 1)"),
			want: []string{
				"spec.rego: 3:1: rego_recursion_error: rule data.p.f is recursive: data.p.f -> data.p.g -> data.p.f",
				"spec.rego: 4:1: rego_recursion_error: rule data.p.g is recursive: data.p.g -> data.p.f -> data.p.g",
			},
		},
		"a parse error has line and column": {
			policy: policy("p", "package p\n\nviolation contains msg if {\n  msg := \n}\n"),
			want:   []string{"spec.rego: 5:1: rego_parse_error: unexpected } token"},
		},
		"a type error has line and column": {
			policy: policy("p", "package p\n\nviolation contains \"x\" if {\n  count(1) == 2\n}\n"),
			want:   []string{"spec.rego: 4:3: rego_type_error: count: invalid argument(s)"},
		},
		"an unsafe variable has line and column": {
			policy: policy("p", "package p\nviolation contains msg if {\n\tinput.object\n}\n"),
			want:   []string{"spec.rego: 2:20: rego_unsafe_var_error: var msg is unsafe"},
		},
		"a builtin that reaches the network is named": {
			policy: policy("p", "package p\nviolation contains \"x\" if {\n  http.send({\"url\": \"http://example.com\", \"method\": \"get\"})\n}\n"),
			want:   []string{"spec.rego: 3:3: rego_type_error: builtin http.send is not allowed in a policy"},
		},
		"a forbidden builtin cannot be smuggled in by with": {
			policy: policy("p", "package p\nviolation contains \"x\" if {\n  is_object(input) with is_object as http.send\n}\n"),
			want:   []string{"spec.rego: 3:38: rego_unsafe_var_error: var http is unsafe"},
		},
		"the environment is out of reach": {
			policy: policy("p", "package p\nviolation contains \"x\" if opa.runtime().env.HOME\n"),
			want:   []string{"spec.rego: 2:27: rego_type_error: builtin opa.runtime is not allowed in a policy"},
		},
		"all faults of the Rego at once": {
			policy: policy("p", "package p\nviolation contains a if true\nviolation contains b if true\n"),
			want: []string{
				"spec.rego: 2:20: rego_unsafe_var_error: var a is unsafe",
				"spec.rego: 3:20: rego_unsafe_var_error: var b is unsafe",
			},
		},
		"no verdict": {
			policy: policy("p", "package p\nallow if true\n"),
			want:   []string{"spec.rego: 1:1: rego_compile_error: there is no rule violation (or deny, or warn)"},
		},
		"a verdict that is misspelt": {
			policy: policy("p", "package p\nviolaton contains \"x\" if true\n"),
			want:   []string{"spec.rego: 2:1: rego_compile_error: there is no rule violation (or deny, or warn): call violaton so: violation"},
		},
		"a verdict with its letters in disorder": {
			policy: policy("p", "package p\nallow if true\ndney contains \"x\" if true\n"),
			want:   []string{"spec.rego: 3:1: rego_compile_error: there is no rule violation (or deny, or warn): call dney so: deny"},
		},
		"a verdict in the words of others": {
			policy: policy("p", "package p\nWarning contains \"x\" if true\n"),
			want:   []string{"spec.rego: 2:1: rego_compile_error: there is no rule violation (or deny, or warn): call Warning so: warn"},
		},
		"a function for a verdict": {
			policy: policy("p", "package p\nviolation(x) := x\n"),
			want:   []string{"spec.rego: 2:1: rego_compile_error: violation is a function: write violation contains … if {…}, and give the function another name"},
		},
		"no package": {
			policy: policy("p", "# nothing\n"),
			want:   []string{"spec.rego: 1:1: rego_parse_error: empty module"},
		},
		"a package of Penstock's own": {
			policy: policy("p", "package penstock.workload\nviolation contains \"x\" if true\n"),
			want:   []string{"spec.rego: 1:1: rego_compile_error: package penstock is reserved: call it after the policy"},
		},
		"recursion": {
			policy: policy("p", "package p\nviolation contains x if some x in violation\n"),
			want:   []string{"spec.rego: 2:1: rego_recursion_error: rule data.p.violation is recursive"},
		},
		"everything that is wrong outside the Rego": {
			policy: policy("p", "package p\nviolation contains \"x\" if true\n", func(spec *v1.WorkloadPolicySpec) {
				bad := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "-"}}
				spec.Match.NamespaceSelector = bad
				spec.Match.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
				spec.Match.Operations = []v1.PolicyOperation{"READ"}
				spec.Action = "Refuse"
				spec.FailurePolicy = "Maybe"
				parameters(`[1]`)(spec)
				spec.Overrides = []v1.PolicyOverride{{}, {NamespaceSelector: bad}}
				spec.Exceptions = []v1.PolicyException{{Reason: "none"}}
			}),
			want: []string{
				"spec.match.operations[0]: Unsupported value",
				"spec.match.namespaceSelector.matchLabels: Invalid value",
				"spec.match.objectSelector.matchExpressions[0].operator: Invalid value",
				"spec.action: Unsupported value",
				"spec.parameters: Invalid value: must be an object",
				"spec.overrides[0].namespaceSelector: Required value",
				"spec.overrides[1].namespaceSelector.matchLabels: Invalid value",
				"spec.exceptions[0].namespaces: Required value",
				"spec.exceptions[0].until: Required value",
				"spec.failurePolicy: Unsupported value",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			compiled, err := policies.Compile(tc.policy)
			if tc.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				if compiled.Name() != "p" || compiled.Generation() != 1 {
					t.Errorf("got %s of generation %d", compiled.Name(), compiled.Generation())
				}
				return
			}
			var faults *policies.CompileError
			if !errors.As(err, &faults) {
				t.Fatalf("got %v, want a CompileError", err)
			}
			lines := strings.Split(err.Error(), "\n")
			// The rest of a line is OPA's or apimachinery's own.
			for i := range min(len(lines), len(tc.want)) {
				if strings.HasPrefix(lines[i], tc.want[i]) {
					lines[i] = tc.want[i]
				}
			}
			if diff := cmp.Diff(tc.want, lines); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if got := len(faults.ErrorList()); got != len(tc.want) {
				t.Errorf("ErrorList holds %d faults, want %d", got, len(tc.want))
			}
		})
	}
}

func TestLibraryCompiles(t *testing.T) {
	loaded, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range loaded {
		if _, err := policies.Compile(p); err != nil {
			t.Errorf("%s:\n%v", p.Name, err)
		}
	}
}
