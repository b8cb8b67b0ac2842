package audit

import (
	"reflect"
	"testing"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/stored"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// brokenObject is an object of which there is something of every sort to say.
func brokenObject(namespace string) *auditedObject {
	found := func(action v1.PolicyAction) []stored.Violation {
		return []stored.Violation{{Violation: policies.Violation{Message: "is wrong", Fix: "mend it", Action: action}, Path: "spec.a"}}
	}
	return &auditedObject{
		kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, namespace: namespace, name: "d", uid: "0f0e-1",
		results: []policyResult{
			{policy: "deny", standing: standing(v1.ActionDeny), violations: append(found(v1.ActionDeny), found(v1.ActionWarn)...)},
			{policy: "excepted", standing: standingExcepted, violations: found(v1.ActionDeny), until: time.Unix(100, 0), reason: "for now"},
			{policy: "failed", standing: standingFailed, fault: "too slow"},
			{policy: "recorded", standing: standing(v1.ActionAudit), violations: found(v1.ActionAudit)},
		},
	}
}

func TestReport(t *testing.T) {
	for _, api := range reportAPIs {
		report := api.reportOn(brokenObject("team"), time.Unix(7, 0))
		var got []string
		results, _, _ := unstructured.NestedSlice(report.Object, "results")
		for _, one := range results {
			result := one.(map[string]any)
			severity, _ := result["severity"].(string)
			got = append(got, result["policy"].(string)+" "+result["result"].(string)+" "+severity)
		}
		want := []string{"deny fail high", "deny warn medium", "excepted skip ", "failed error ", "recorded fail low"}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("results %q, want %q", got, want)
		}
		summary, _, _ := unstructured.NestedMap(report.Object, "summary")
		if want := map[string]any{"pass": int64(0), "fail": int64(2), "warn": int64(1), "error": int64(1), "skip": int64(1)}; !reflect.DeepEqual(summary, want) {
			t.Errorf("summary %v, want %v", summary, want)
		}
		owners := report.GetOwnerReferences()
		if len(owners) != 1 || owners[0].UID != "0f0e-1" || owners[0].Kind != "Deployment" || owners[0].APIVersion != "apps/v1" || owners[0].BlockOwnerDeletion != nil {
			t.Errorf("owners %v", owners)
		}
		later := api.reportOn(brokenObject("team"), time.Unix(9, 0))
		if a, b := report.GetAnnotations()[reportDigest], later.GetAnnotations()[reportDigest]; a != b || a == "" {
			t.Errorf("digests %q and %q of the same said later", a, b)
		}
		other := brokenObject("team")
		other.results[0].violations[0].Message = "is worse"
		changed := api.reportOn(other, time.Unix(9, 0))
		if report.GetAnnotations()[reportDigest] == changed.GetAnnotations()[reportDigest] {
			t.Error("two reports have one digest")
		}
		keepTimes(changed, report)
		times := map[int64]int{}
		results, _, _ = unstructured.NestedSlice(changed.Object, "results")
		for _, one := range results {
			seconds, _, _ := unstructured.NestedInt64(one.(map[string]any), "timestamp", "seconds")
			times[seconds]++
		}
		if want := map[int64]int{7: 4, 9: 1}; !reflect.DeepEqual(times, want) {
			t.Errorf("times %v, want %v", times, want)
		}
	}
}

func TestReportsAreBounded(t *testing.T) {
	object := brokenObject("team")
	object.results = nil
	for _, policy := range []string{"a", "b", "c", "d", "e", "f"} {
		one := policyResult{policy: policy, standing: standing(v1.ActionDeny)}
		for range 3 * maxViolations {
			one.keep(stored.Judgement{At: func(path string) string { return path }}, policies.Violation{Message: "no", Action: v1.ActionDeny})
		}
		object.results = append(object.results, one)
	}
	report := reportAPIs[0].reportOn(object, time.Unix(7, 0))
	results, _, _ := unstructured.NestedSlice(report.Object, "results")
	if len(results) != maxReportResults {
		t.Errorf("%d results, want %d", len(results), maxReportResults)
	}
}

// Reports are written as their API has them: nothing is refused and nothing lost.
func TestReportsFitTheirAPI(t *testing.T) {
	apis := map[string]*reportAPI{}
	for _, api := range reportAPIs {
		apis[api.version.Group] = api
	}
	for _, definition := range append(fixtures.ReportDefinitions(t), fixtures.OlderReportDefinitions(t)...) {
		t.Run(definition.Name, func(t *testing.T) {
			api, namespace := apis[definition.Spec.Group], "team"
			if definition.Spec.Scope == apiextensionsv1.ClusterScoped {
				namespace = ""
			}
			kind := api.kindFor(namespace)
			if definition.Spec.Names.Kind != kind.kind || definition.Spec.Names.Plural != kind.resource || definition.Spec.Versions[0].Name != api.version.Version {
				t.Fatalf("kind %s, resource %s, version %s; want %v %s", definition.Spec.Names.Kind, definition.Spec.Names.Plural, definition.Spec.Versions[0].Name, kind, api.version)
			}
			report := api.reportOn(brokenObject(namespace), time.Unix(7, 0))
			var internal apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(definition.Spec.Versions[0].Schema.OpenAPIV3Schema, &internal, nil); err != nil {
				t.Fatal(err)
			}
			validator, _, err := validation.NewSchemaValidator(&internal)
			if err != nil {
				t.Fatal(err)
			}
			if faults := validation.ValidateCustomResource(nil, report.Object, validator); len(faults) > 0 {
				t.Error(faults.ToAggregate())
			}
			structural, err := structuralschema.NewStructural(&internal)
			if err != nil {
				t.Fatal(err)
			}
			pruned := pruning.PruneWithOptions(report.DeepCopy().Object, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
			if len(pruned) > 0 {
				t.Errorf("the API knows nothing of %v", pruned)
			}
		})
	}
}
