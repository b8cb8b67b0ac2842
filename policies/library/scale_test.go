package library_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/library"
)

// What a policy refuses by the number of workers it must also refuse of a write
// of that number alone: kubectl scale and autoscalers write through the
// subresource, of which policies are asked that name it.
func TestPoliciesOnNumbersJudgeScale(t *testing.T) {
	loaded, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	counting := 0
	for _, policy := range loaded {
		if policy.Spec.Action != v1.ActionDeny || !slices.ContainsFunc(policy.Spec.Match.Resources, func(r v1.PolicyResources) bool { return slices.Contains(r.Kinds, v1.TrainingJobKind) }) {
			continue
		}
		engine := policies.NewEngine(policies.Options{Deadline: 10 * time.Second})
		if err := engine.Set(policy); err != nil {
			t.Fatal(err)
		}
		counts, scaled := false, false
		for _, tc := range readCases(t, policy.Name) {
			few, many := withWorkers(t, tc, 1), withWorkers(t, tc, 200)
			if few == nil || tc.PolicyParameters != nil {
				continue
			}
			judge := func(object []byte, subresource string) policies.Verdict {
				request := requestOf(t, tc)
				request.Object, request.OldObject, request.SubResource, request.Operation = object, few, subresource, v1.OperationUpdate
				return engine.Snapshot().Judge(t.Context(), request)
			}
			if now, most := judge(few, ""), judge(many, ""); now.Allowed() && !most.Allowed() {
				counts = true
				after := judge(many, "scale")
				scaled = scaled || !after.Allowed()
			}
		}
		if counts {
			counting++
		}
		if counts && !scaled {
			t.Errorf("%s refuses large jobs and lets a job be scaled to any size: name the subresource scale", policy.Name)
		}
	}
	if counting < 5 {
		t.Errorf("%d policies go by the number of workers, want some more", counting)
	}
}

// withWorkers gives the job of a case with another number of workers, nil if it
// has none.
func withWorkers(t *testing.T, tc testCase, replicas int) []byte {
	t.Helper()
	var job map[string]any
	if err := json.Unmarshal(tc.Object, &job); err != nil {
		t.Fatal(err)
	}
	spec, _ := job["spec"].(map[string]any)
	roles, _ := spec["roles"].([]any)
	found := false
	for _, one := range roles {
		if role, ok := one.(map[string]any); ok && role["name"] == "Worker" {
			role["replicas"], found = replicas, true
		}
	}
	if job["kind"] != v1.TrainingJobKind || !found {
		return nil
	}
	if elastic, ok := spec["elastic"].(map[string]any); ok {
		elastic["replicas"] = replicas
	}
	raw, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
