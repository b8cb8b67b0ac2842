package webhooks_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// A policy selects what a subresource belongs to, and not what is written to it.
func TestSelectorsOnSubresources(t *testing.T) {
	strict := func(spec *v1.WorkloadPolicySpec) {
		spec.Match.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"strict": "1"}}
	}
	failsOpen := func(spec *v1.WorkloadPolicySpec) { spec.FailurePolicy = v1.FailurePolicyIgnore }
	objects := world{"strict": `{"metadata":{"labels":{"strict":"1"}}}`, "other": `{"metadata":{"labels":{"strict":"2"}}}`}
	const body = `msg := "no"; field := "what"`
	exec := func(mods ...func(*v1.WorkloadPolicySpec)) *v1.WorkloadPolicy {
		return policyOn("p", "", "Pod", body, append(mods, strict, subresources("exec"), operations(v1.OperationConnect))...)
	}
	evicted := policyOn("p", "", "Pod", body, strict, subresources("eviction"))
	scaled := policyOn("p", "acme.io", "Gadget", `input.object.spec.replicas > 3; msg := "no"; field := "what"`, strict, subresources("scale"))
	eviction := func(name string) string {
		return "{apiVersion: policy/v1, kind: Eviction, metadata: {name: " + name + ", namespace: " + fixtures.Namespace + ", labels: {strict: '1'}}}"
	}
	scale := func(name string) string {
		return "{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: " + name + ", namespace: " + fixtures.Namespace + "}, spec: {replicas: 4}}"
	}
	options := func(name string) string {
		return "{apiVersion: v1, kind: PodExecOptions, metadata: {name: " + name + ", namespace: " + fixtures.Namespace + "}}"
	}
	asExec := []mod{as("", "v1", "PodExecOptions"), of("", "pods", "exec"), connected}
	asEviction := []mod{as("policy", "v1", "Eviction"), of("", "pods", "eviction")}
	asScale := []mod{as("autoscaling", "v1", "Scale"), of("acme.io", "gadgets", "scale"), from(t, "{spec: {replicas: 1}}")}
	const unknown = "policy p could not be evaluated: its objectSelector looks at the labels of "
	for name, tc := range map[string]struct {
		policy  *v1.WorkloadPolicy
		object  string
		mods    []mod
		want    []string
		warning string
	}{
		"exec":                     {policy: exec(), object: options("strict"), mods: asExec, want: []string{"what: no (policy p)"}},
		"exec, of another pod":     {policy: exec(), object: options("other"), mods: asExec},
		"eviction":                 {policy: evicted, object: eviction("strict"), mods: asEviction, want: []string{"what: no (policy p)"}},
		"eviction, of another pod": {policy: evicted, object: eviction("other"), mods: asEviction},
		"scale":                    {policy: scaled, object: scale("strict"), mods: asScale, want: []string{"what: no (policy p)"}},
		"scale, of another object": {policy: scaled, object: scale("other"), mods: asScale},
		"of what is not there":     {policy: exec(), object: options("gone"), mods: asExec, want: []string{"metadata: " + unknown + "Pod gone, which are not known: there is no such object"}},
		"which passes if it may":   {policy: exec(failsOpen), object: options("gone"), mods: asExec, warning: unknown + "Pod gone, which are not known: there is no such object"},
		"of what Penstock may not get": {policy: scaled, object: scale("barred"), mods: asScale, want: []string{
			"spec: " + unknown + "Gadget barred, which are not known: grant Penstock get on gadgets.acme.io, by a ClusterRole labelled penstock.dev/aggregate-to-manager=true"}},
	} {
		t.Run(name, func(t *testing.T) {
			response := judging(t, objects, tc.policy).Judge(t.Context(), create(t, tc.object, tc.mods...), policies.EntryOf(&tc.policy.Spec))
			if diff := cmp.Diff(tc.want, causesOf(response)); diff != "" || response.Allowed != (tc.want == nil) {
				t.Errorf("allowed is %t, causes (-want +got):\n%s", response.Allowed, diff)
			}
			var warnings []string
			if tc.warning != "" {
				warnings = []string{tc.warning}
			}
			if diff := cmp.Diff(warnings, response.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
