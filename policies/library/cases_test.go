package library_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/library"
	"github.com/penstock-dev/penstock/webhooks/cel"
)

// testCase is a document of a file in cases/: an object and the verdict it must
// get from the policy in whose folder the file is.
type testCase struct {
	// Name is a sentence.
	Name string `json:"name"`
	// PolicyParameters take the place of the policy's own, if given.
	PolicyParameters json.RawMessage `json:"policyParameters,omitempty"`
	// Operation is UPDATE when there is an oldObject, else CREATE, if left out.
	Operation   v1.PolicyOperation `json:"operation,omitempty"`
	SubResource string             `json:"subResource,omitempty"`
	Object      json.RawMessage    `json:"object"`
	OldObject   json.RawMessage    `json:"oldObject,omitempty"`
	// Inventory is what the cluster has of the kinds that the policy reads.
	Inventory []map[string]any `json:"inventory,omitempty"`
	// Unasked tells that a match condition keeps the API server from asking.
	Unasked bool `json:"unasked,omitempty"`
	// Expect is allow, warn or deny.
	Expect string `json:"expect"`
	// Violations are all that must be found: field and a part of the message.
	Violations []struct {
		Field   string `json:"field"`
		Message string `json:"message"`
	} `json:"violations,omitempty"`
}

func TestCases(t *testing.T) {
	loaded, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range loaded {
		t.Run(policy.Name, func(t *testing.T) {
			seen := map[string]bool{}
			for _, tc := range readCases(t, policy.Name) {
				seen[tc.Expect] = true
				t.Run(tc.Name, func(t *testing.T) { runCase(t, policy, tc) })
			}
			if !(seen["deny"] || seen["warn"]) || !seen["allow"] && library.Folder(policy.Name) == policy.Name {
				t.Errorf("cases of %s must hold an allowed and a refused object at least", policy.Name)
			}
		})
	}
}

// readCases reads the cases of a policy: of those in its folder, what is of the
// kinds that it matches and not its twin.
func readCases(t *testing.T, policy string) []testCase {
	t.Helper()
	folder := library.Folder(policy)
	files, err := filepath.Glob(filepath.Join(folder, "cases", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []testCase
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq("\n"+string(text), "\n---\n") {
			if strings.TrimSpace(document) == "" {
				continue
			}
			var tc testCase
			if err := yaml.UnmarshalStrict([]byte(document), &tc); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if own := requestOf(t, tc).Kind.Group == v1.GroupName; own == (policy == folder) {
				cases = append(cases, tc)
			}
		}
	}
	return cases
}

func runCase(t *testing.T, policy *v1.WorkloadPolicy, tc testCase) {
	if tc.PolicyParameters != nil {
		policy = policy.DeepCopy()
		policy.Spec.Parameters = &runtime.RawExtension{Raw: tc.PolicyParameters}
	}
	engine := policies.NewEngine(policies.Options{Deadline: 10 * time.Second})
	if err := engine.Set(policy); err != nil {
		t.Fatal(err)
	}
	for _, need := range engine.Inventory().Needs() {
		if err := engine.Inventory().Replace(need.Kind, tc.Inventory); err != nil {
			t.Fatal(err)
		}
	}
	verdict := engine.Snapshot().Judge(t.Context(), requestOf(t, tc))
	if len(verdict.Judged) != 1 && !(tc.Unasked && len(verdict.Judged) == 0) {
		t.Fatalf("the policy did not judge the object: %+v", verdict)
	}
	got := "allow"
	switch {
	case !verdict.Allowed():
		got = "deny"
	case len(verdict.Warnings()) > 0:
		got = "warn"
	}
	if got != tc.Expect {
		t.Errorf("got %s, want %s: %v", got, tc.Expect, verdict.Violations)
	}
	found := slices.Clone(verdict.Violations)
	for _, want := range tc.Violations {
		i := slices.IndexFunc(found, func(v policies.Violation) bool {
			return v.Field == want.Field && strings.Contains(v.Message, want.Message)
		})
		if i < 0 {
			t.Errorf("no violation at %s with %q", want.Field, want.Message)
			continue
		}
		if found[i].Fix == "" {
			t.Errorf("violation at %s has no fix", want.Field)
		}
		found = slices.Delete(found, i, i+1)
	}
	for _, v := range found {
		t.Errorf("unexpected violation at %s: %s", v.Field, v)
	}
}

func requestOf(t *testing.T, tc testCase) policies.Request {
	t.Helper()
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(tc.Object, &object); err != nil {
		t.Fatal(err)
	}
	gvk := schema.FromAPIVersionAndKind(object.APIVersion, object.Kind)
	request := policies.Request{
		Kind:        metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind},
		SubResource: tc.SubResource,
		Namespace:   "team",
		Name:        object.Name,
		Operation:   tc.Operation,
		UserKnown:   true,
		Object:      tc.Object,
		OldObject:   tc.OldObject,
		Now:         time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC),
		NamespaceLabels: func() (map[string]string, error) {
			return map[string]string{"kubernetes.io/metadata.name": "team"}, nil
		},
	}
	if request.Operation == "" {
		request.Operation = v1.OperationCreate
		if tc.OldObject != nil {
			request.Operation = v1.OperationUpdate
		}
	}
	if request.Kind.Kind == "" {
		t.Fatal(fmt.Errorf("case %q has an object without kind", tc.Name))
	}
	request.Scope.Holds = func(conditions []admissionregistrationv1.MatchCondition) (bool, error) {
		holds, err := cel.Hold(t.Context(), conditions, &admissionv1.AdmissionRequest{
			Kind: request.Kind, SubResource: request.SubResource, Name: request.Name, Namespace: request.Namespace,
			Operation: admissionv1.Operation(request.Operation),
			Object:    runtime.RawExtension{Raw: request.Object}, OldObject: runtime.RawExtension{Raw: request.OldObject},
		}, cel.Requester{Known: true})
		if err != nil {
			t.Errorf("the match conditions fail: %v", err)
		}
		return holds, err
	}
	return request
}
