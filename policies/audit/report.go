package audit

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// A reportAPI is an API that reports are written in. Both have the same shape but
// for the source at the top.
type reportAPI struct {
	version    schema.GroupVersion
	namespaced reportKind
	cluster    reportKind
	// source tells that a report as a whole has one.
	source bool
}

type reportKind struct{ kind, resource string }

// reportAPIs are the APIs that are known, the one to prefer first.
var reportAPIs = []*reportAPI{
	{
		version:    schema.GroupVersion{Group: "openreports.io", Version: "v1alpha1"},
		namespaced: reportKind{"Report", "reports"}, cluster: reportKind{"ClusterReport", "clusterreports"}, source: true,
	},
	{
		version:    schema.GroupVersion{Group: "wgpolicyk8s.io", Version: "v1alpha2"},
		namespaced: reportKind{"PolicyReport", "policyreports"}, cluster: reportKind{"ClusterPolicyReport", "clusterpolicyreports"},
	},
}

func (a *reportAPI) kindFor(namespace string) reportKind {
	if namespace == "" {
		return a.cluster
	}
	return a.namespaced
}

const (
	// reportSource names Penstock in reports.
	reportSource = "penstock"
	// managedByLabel is on all reports of Penstock.
	managedByLabel = "app.kubernetes.io/managed-by"
	// reportDigest is what a report says, but for its times, in short.
	reportDigest = "penstock.dev/report-digest"
	// maxReportResults bounds a report.
	maxReportResults = 100
)

// Results of a report, as both APIs name them.
const (
	reportFail  = "fail"
	reportWarn  = "warn"
	reportError = "error"
	reportSkip  = "skip"
)

// reportName is the name of the report on an object; other tools name theirs by
// the UID alone.
func reportName(object *auditedObject) string { return "penstock-" + string(object.uid) }

// reportOn writes the report on an object, as of now. It goes with its object,
// being owned by it.
func (a *reportAPI) reportOn(object *auditedObject, now time.Time) *unstructured.Unstructured {
	results := make([]any, 0, len(object.results))
	var stamped []map[string]any
	summary := map[string]any{"pass": int64(0), reportFail: int64(0), reportWarn: int64(0), reportError: int64(0), reportSkip: int64(0)}
	for _, one := range object.results {
		for _, result := range one.reported() {
			if len(results) < maxReportResults {
				results, stamped = append(results, result), append(stamped, result)
				kind, _ := result["result"].(string)
				count, _ := summary[kind].(int64)
				summary[kind] = count + 1
			}
		}
	}
	apiVersion, kind := object.kind.ToAPIVersionAndKind()
	scope := map[string]any{"apiVersion": apiVersion, "kind": kind, "name": object.name, "uid": string(object.uid)}
	if object.namespace != "" {
		scope["namespace"] = object.namespace
	}
	content := map[string]any{"scope": scope, "results": results, "summary": summary}
	if a.source {
		content["source"] = reportSource
	}
	// It is made of strings and numbers, which encode always.
	raw, _ := json.Marshal(content)
	sum := sha256.Sum256(raw)
	stamp := map[string]any{"seconds": now.Unix(), "nanos": int64(0)}
	for _, result := range stamped {
		result["timestamp"] = stamp
	}
	report := &unstructured.Unstructured{Object: content}
	report.SetGroupVersionKind(a.version.WithKind(a.kindFor(object.namespace).kind))
	report.SetNamespace(object.namespace)
	report.SetName(reportName(object))
	report.SetLabels(map[string]string{managedByLabel: reportSource})
	report.SetAnnotations(map[string]string{reportDigest: hex.EncodeToString(sum[:8])})
	report.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: object.name, UID: object.uid}})
	return report
}

// reported are the results of one policy: one for each fault.
func (r policyResult) reported() []map[string]any {
	var found []map[string]any
	add := func(result, severity, message string, properties map[string]string) {
		one := map[string]any{
			"source": reportSource, "policy": r.policy, "result": result, "message": message, "scored": result != reportWarn,
		}
		if severity != "" {
			one["severity"] = severity
		}
		said := map[string]any{}
		for name, value := range properties {
			if value != "" {
				said[name] = value
			}
		}
		if len(said) > 0 {
			one["properties"] = said
		}
		found = append(found, one)
	}
	for _, violation := range r.violations {
		properties := map[string]string{"field": violation.Path, "fix": violation.Fix, "action": string(violation.Action)}
		result, severity := reportResult(violation.Action)
		if r.standing == standingExcepted {
			result, severity = reportSkip, ""
			properties["until"], properties["reason"] = r.until.UTC().Format(time.RFC3339), r.reason
		}
		add(result, severity, cmp.Or(violation.Message, "breaks the policy"), properties)
	}
	if r.fault != "" {
		add(reportError, "", r.fault, nil)
	}
	return found
}

// reportResult is how a report calls what a violation does. What is only recorded
// is a fault nevertheless; warn is for what does not count.
func reportResult(action v1.PolicyAction) (result, severity string) {
	switch action {
	case v1.ActionDeny:
		return reportFail, "high"
	case v1.ActionWarn:
		return reportWarn, "medium"
	default:
		return reportFail, "low"
	}
}

// keepTimes gives results that an older report had their times.
func keepTimes(report, old *unstructured.Unstructured) {
	times := map[string]any{}
	results, _, _ := unstructured.NestedSlice(old.Object, "results")
	for _, one := range results {
		if result, ok := one.(map[string]any); ok {
			times[resultKey(result)] = result["timestamp"]
		}
	}
	results, _ = report.Object["results"].([]any)
	for _, one := range results {
		result, _ := one.(map[string]any)
		if stamp, ok := times[resultKey(result)].(map[string]any); ok {
			result["timestamp"] = stamp
		}
	}
}

// resultKey is what a result says, but for its time.
func resultKey(result map[string]any) string {
	bare := make(map[string]any, len(result))
	for member, value := range result {
		if member != "timestamp" {
			bare[member] = value
		}
	}
	raw, _ := json.Marshal(bare)
	return string(raw)
}
