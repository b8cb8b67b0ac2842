package controller

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

func TestReduced(t *testing.T) {
	tests := map[string]struct{ in, want []string }{
		"nothing":                            {nil, nil},
		"objects and their scale":            {[]string{"deployments/scale", "deployments"}, []string{"deployments", "deployments/scale"}},
		"twice":                              {[]string{"pods", "pods/exec", "pods"}, []string{"pods", "pods/exec"}},
		"all subresources of a kind":         {[]string{"deployments", "deployments/scale", "deployments/*", "pods"}, []string{"deployments/*", "pods"}},
		"a subresource of all kinds":         {[]string{"deployments", "deployments/scale", "*/scale"}, []string{"*/scale", "deployments"}},
		"all kinds":                          {[]string{"*", "pods", "pods/exec"}, []string{"*", "pods/exec"}},
		"everything":                         {[]string{"*", "*/*", "*/scale", "pods", "pods/*", "pods/exec"}, []string{"*/*"}},
		"everything, and itself":             {[]string{"*/*", "*/*"}, []string{"*/*"}},
		"all of a kind and one of all kinds": {[]string{"pods/exec", "*/exec", "pods/*"}, []string{"*/exec", "pods/*"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.in)
			if diff := cmp.Diff(tc.want, reduced(tc.in)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.in); diff != "" {
				t.Errorf("changed what it was given (-before +after):\n%s", diff)
			}
		})
	}
}

// Whatever policies there are, the API server takes the rules, and asks about what
// they asked about one by one.
func FuzzRulesAreTaken(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		all := randomPolicies(rand.New(rand.NewPCG(seed, 1)))
		webhooks, _, err := Rules(all, kinds, rulesOptions)
		if err != nil {
			t.Fatal(err)
		}
		byEntry := map[string][]admissionregistrationv1.RuleWithOperations{}
		for _, policy := range all {
			collected := collect(policy, kinds, rulesOptions)
			name := string(collected.entry) + ".policies.penstock.dev"
			byEntry[name] = append(byEntry[name], collected.rules...)
		}
		for _, webhook := range webhooks[:max(len(webhooks)-1, 0)] {
			for i, rule := range webhook.Rules {
				if fault := refusedRule(rule); fault != "" {
					t.Errorf("%s: rules[%d] %v: %s", webhook.Name, i, rule.Resources, fault)
				}
			}
			for _, request := range requests() {
				if got, want := matches(webhook.Rules, request), matches(byEntry[webhook.Name], request); got != want {
					t.Errorf("%s: asks about %s %s/%s: %t, want %t: %v", webhook.Name, request.GetOperation(), request.GetResource(), request.GetSubresource(), got, want, webhook.Rules)
				}
			}
		}
	})
}

func randomPolicies(random *rand.Rand) []*v1.WorkloadPolicy {
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	all := make([]*v1.WorkloadPolicy, 1+random.IntN(4))
	for i := range all {
		var mods []func(*v1.WorkloadPolicySpec)
		for range 1 + random.IntN(3) {
			kind := [][2]string{{"apps", "Deployment"}, {"apps", "StatefulSet"}, {"", "Pod"}, {"apps", "*"}, {"*", "*"}, {v1.GroupName, v1.TrainingJobKind}}[random.IntN(6)]
			var subresources []string
			for range random.IntN(4) {
				subresources = append(subresources, pick("", "*", "scale", "status", "exec", "*/*"))
			}
			mods = append(mods, on(kind[0], kind[1], subresources...))
		}
		for _, mod := range []func(*v1.WorkloadPolicySpec){ignoring, upstream, deleting, connecting, with("true"), in("many")} {
			if random.IntN(5) == 0 {
				mods = append(mods, mod)
			}
		}
		all[i] = matching(fmt.Sprint("p", i), mods...)
	}
	return all
}

// requests are one of each sort.
func requests() []admission.Attributes {
	var all []admission.Attributes
	for _, resource := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "pods"}, {Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "daemonsets"}, v1.GroupVersion.WithResource("trainingjobs"),
	} {
		for _, subresource := range []string{"", "scale", "status", "exec", "*/*"} {
			for _, operation := range []admission.Operation{admission.Create, admission.Update, admission.Delete, admission.Connect} {
				all = append(all, admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "a", "b", resource, subresource, operation, nil, false, nil))
			}
		}
	}
	return all
}

func matches(all []admissionregistrationv1.RuleWithOperations, request admission.Attributes) bool {
	return slices.ContainsFunc(all, func(rule admissionregistrationv1.RuleWithOperations) bool {
		matcher := rules.Matcher{Rule: rule, Attr: request}
		return matcher.Matches()
	})
}

// refusedRule says what the API server finds wrong with a rule of a webhook, as of
// Kubernetes 1.37: what stands beside a wildcard that comprises it, in the order in
// which it is written.
func refusedRule(rule admissionregistrationv1.RuleWithOperations) string {
	switch {
	case len(rule.Operations) == 0 || len(rule.APIGroups) == 0 || len(rule.APIVersions) == 0 || len(rule.Resources) == 0:
		return "something is empty"
	case slices.Contains(rule.APIVersions, ""):
		return "a version is empty"
	case len(rule.Operations) > 1 && slices.Contains(rule.Operations, admissionregistrationv1.OperationAll):
		return "operations beside *"
	case len(rule.Resources) > 1 && slices.Contains(rule.Resources, "*/*"):
		return "resources beside */*"
	}
	all, single := slices.Contains(rule.Resources, "*"), false
	for i, one := range rule.Resources {
		kind, subresource, has := strings.Cut(one, "/")
		if !has {
			single = single || one != "*"
			continue
		}
		for _, before := range rule.Resources[:i] {
			if before == kind+"/*" || before == "*/"+subresource {
				return one + " after " + before
			}
		}
	}
	if all && single {
		return "resources beside *"
	}
	return ""
}
