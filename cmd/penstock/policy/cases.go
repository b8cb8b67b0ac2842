package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/cmd/penstock/check"
	"github.com/penstock-dev/penstock/policies"
)

// A Case is a document of a YAML file in the folder cases beside policies: a
// request, the world it is made in, and what the policies must say. What is left
// out of the world is not there: no other objects, no labels; but for the user,
// whom a policy that reads him must be given.
type Case struct {
	// Name is a sentence.
	Name string `json:"name"`
	// Policy judges alone; without it all policies of the folder that match do.
	Policy string `json:"policy,omitempty"`
	// PolicyParameters take the place of the policy's own.
	PolicyParameters json.RawMessage `json:"policyParameters,omitempty"`
	// Operation is CREATE when left out, UPDATE with an OldObject alone.
	Operation   penstockv1.PolicyOperation `json:"operation,omitempty"`
	SubResource string                     `json:"subResource,omitempty"`
	// Object and OldObject are objects, or paths of files that hold one, relative
	// to the case's. With DELETE either is what is deleted.
	Object    json.RawMessage `json:"object,omitempty"`
	OldObject json.RawMessage `json:"oldObject,omitempty"`
	// User makes the request.
	User *authenticationv1.UserInfo `json:"user,omitempty"`
	// NamespaceLabels are those of the object's namespace, besides its name.
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`
	// Inventory are objects that the cluster has, or paths of files with some.
	Inventory []json.RawMessage `json:"inventory,omitempty"`
	// Now is the time of the request, in RFC 3339; the present when left out.
	Now *time.Time `json:"now,omitempty"`
	// Unasked tells that no policy is to judge the object: none matches it, or a
	// match condition, or its namespace, keeps the API server from asking. One that
	// excepts the object matches it.
	Unasked bool `json:"unasked,omitempty"`
	// Expect is allow, warn or deny.
	Expect string `json:"expect"`
	// Violations are all that must be found, also of policies that only audit.
	Violations []CaseViolation `json:"violations,omitempty"`
}

// CaseViolation is one thing that a policy finds.
type CaseViolation struct {
	// Policy need be said only where several policies judge.
	Policy string `json:"policy,omitempty"`
	// Field is the path in the object as the case writes it.
	Field string `json:"field"`
	// Message and Fix are parts of what the policy says.
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// matches reports whether a violation is the one that a case expects.
func (v *CaseViolation) matches(found policies.Violation) bool {
	return (v.Policy == "" || v.Policy == found.Policy) && v.Field == found.Field &&
		strings.Contains(found.Message, v.Message) && strings.Contains(found.Fix, v.Fix)
}

// runCases runs the cases of a file.
func (r *testRun) runCases(ctx context.Context, folder *testFolder, file string) {
	if len(folder.policies) == 0 {
		r.fail(fmt.Errorf("%s: there is no WorkloadPolicy in %s that the cases could be about", file, folder.path))
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		r.fail(err)
		return
	}
	for _, document := range check.Documents(text) {
		at := fmt.Sprintf("%s:%d", file, document.Line)
		one, err := readCase(document.Text)
		if err != nil {
			r.fail(fmt.Errorf("%s: %w", at, err))
			continue
		}
		if !r.selects(file, one.Name) {
			continue
		}
		began := time.Now()
		problems, err := r.runCase(ctx, folder, one, filepath.Dir(file))
		if err != nil {
			r.fail(fmt.Errorf("%s: case %q: %w", at, one.Name, err))
			continue
		}
		r.add(resultOf("case", file, document.Line, one.Name, began, problems))
	}
}

// readCase reads a case strictly: a field that is misspelt would not be tested.
func readCase(text []byte) (*Case, error) {
	one := &Case{}
	if err := yaml.UnmarshalStrict(text, one); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: "))
	}
	switch {
	case one.Name == "":
		return nil, errors.New("name: a case needs one: write a sentence")
	case !slices.Contains([]string{"allow", "warn", "deny"}, one.Expect):
		return nil, fmt.Errorf("case %q: expect must be allow, warn or deny, not %q", one.Name, one.Expect)
	case one.Expect == "deny" && len(one.Violations) == 0:
		return nil, fmt.Errorf("case %q: violations: say what the policy must find, field and a part of the message", one.Name)
	case one.Unasked && one.Expect != "allow":
		return nil, fmt.Errorf("case %q: what no policy is asked about is allowed: expect must be allow", one.Name)
	}
	for i, violation := range one.Violations {
		if violation.Message == "" {
			return nil, fmt.Errorf("case %q: violations[%d].message: write a part of what the policy says", one.Name, i)
		}
	}
	return one, nil
}

// runCase gives what is not as the case says; an error if it cannot be run.
func (r *testRun) runCase(ctx context.Context, folder *testFolder, one *Case, dir string) ([]string, error) {
	judging, err := folder.judging(one)
	if err != nil {
		return nil, err
	}
	made, err := r.reader.requestOf(ctx, one, dir)
	if err != nil {
		return nil, err
	}
	var all policies.Verdict
	var excepted []string
	for _, policy := range judging {
		verdict, err := made.judge(ctx, policy, folder.of(policy.Name), r.options.Timeout)
		if err != nil {
			return nil, err
		}
		join(&all, verdict)
		if len(verdict.Excepted) > 0 {
			excepted = append(excepted, made.exception(policy))
		}
	}
	for _, violation := range all.Violations {
		if text := violation.Strays(); text != "" && !slices.Contains(r.report.Warnings, text) {
			r.report.Warnings = append(r.report.Warnings, text)
		}
	}
	return one.problems(all, excepted), nil
}

// judging are the policies that a case is about, with its parameters.
func (f *testFolder) judging(one *Case) ([]*penstockv1.WorkloadPolicy, error) {
	var judging []*penstockv1.WorkloadPolicy
	var names []string
	for _, policy := range f.policies {
		names = append(names, policy.Name)
		if one.Policy != "" && one.Policy != policy.Name {
			continue
		}
		if one.PolicyParameters != nil {
			policy = policy.DeepCopy()
			policy.Spec.Parameters = &runtime.RawExtension{Raw: one.PolicyParameters}
		}
		judging = append(judging, policy)
	}
	if len(judging) == 0 {
		return nil, fmt.Errorf("policy: %s has no %s; it has %s", f.path, one.Policy, strings.Join(names, ", "))
	}
	return judging, nil
}

// problems are what a verdict is and the case does not expect. excepted says which
// exceptions let the object pass.
func (c *Case) problems(verdict policies.Verdict, excepted []string) []string {
	var problems []string
	for _, e := range verdict.Errors {
		problems = append(problems, e.String())
	}
	for _, one := range verdict.NotEvaluated {
		problems = append(problems, fmt.Sprintf("policy %s was not evaluated: %s", one.Policy, lacks(one.Missing)))
	}
	if len(problems) > 0 {
		return problems // of which the rest would follow
	}
	judged := len(verdict.Judged) > 0
	switch {
	case c.Unasked && len(excepted) > 0:
		problems = append(problems, "a policy that matches is asked, whatever its exceptions let pass: leave unasked out")
	case !judged && !c.Unasked && len(excepted) == 0:
		problems = append(problems, "no policy judges the object: match, or the case, is not what is meant; write unasked: true if it is")
	case judged && c.Unasked:
		problems = append(problems, fmt.Sprintf("judged by %s, and no policy is to be asked", strings.Join(verdict.Judged, ", ")))
	}
	got := "allow"
	switch {
	case !verdict.Allowed():
		got = "deny"
	case len(verdict.Warnings()) > 0:
		got = "warn"
	}
	if got != c.Expect {
		problems = append(problems, fmt.Sprintf("got %s, want %s", got, c.Expect))
	}
	problems = append(problems, c.otherViolations(verdict)...)
	if len(problems) > 0 {
		problems = append(problems, excepted...)
	}
	return problems
}

// otherViolations are those that are expected and not found, and the other way
// round.
func (c *Case) otherViolations(verdict policies.Verdict) []string {
	var problems []string
	found := slices.Clone(verdict.Violations)
	for _, want := range c.Violations {
		i := slices.IndexFunc(found, want.matches)
		switch {
		case i >= 0:
			found = slices.Delete(found, i, i+1)
		case slices.ContainsFunc(verdict.Tolerated, want.matches):
			problems = append(problems, fmt.Sprintf("the violation at %q that says %q is tolerated: oldObject has it, too, and the update leaves it as it is", want.Field, want.Message))
		default:
			problems = append(problems, fmt.Sprintf("no violation at %q that says %q", want.Field, want.Message))
		}
	}
	for _, unexpected := range found {
		problems = append(problems, fmt.Sprintf("unexpected violation at %q: %s", unexpected.Field, unexpected))
	}
	return problems
}

// lacks says what to add to a case.
func lacks(missing policies.Missing) string {
	switch missing {
	case policies.MissingUser:
		return "it depends on the user: give user.username and user.groups"
	case policies.MissingConditions:
		return "its matchConditions ask what only the API server knows, or the user: give user, or leave the condition to the cluster"
	default:
		return "for want of " + string(missing)
	}
}

// objectOf is an object of a case: itself, or that of the file it names.
func objectOf(raw json.RawMessage, dir, field string) ([]byte, error) {
	objects, err := objectsOf(raw, dir, field)
	if err != nil || objects == nil {
		return nil, err
	}
	if len(objects) != 1 {
		return nil, fmt.Errorf("%s: the file holds %d objects and must hold one", field, len(objects))
	}
	return objects[0], nil
}

func objectsOf(raw json.RawMessage, dir, field string) ([][]byte, error) {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil, nil
	}
	if raw[0] != '"' {
		return [][]byte{raw}, nil
	}
	var file string
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	objects, unreadable := check.Load([]string{filepath.Join(dir, file)}, false, nil)
	if len(unreadable) > 0 {
		return nil, fmt.Errorf("%s: %w", field, unreadable[0])
	}
	var found [][]byte
	for _, object := range objects {
		found = append(found, object.JSON)
	}
	return found, nil
}

// labelsOf are the labels of a namespace.
func labelsOf(name string, labels map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, labels)
	// The API server writes this label itself.
	all[corev1.LabelMetadataName] = name
	return all
}
