package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/stored"
)

// Bounds on the status of a policy, as its API has them.
const (
	maxSamples       = 10
	maxSampleText    = 256
	maxStatusMessage = 1024
	maxUnseen        = 64
)

// status puts together what a policy says of all objects.
func (r *results) status(policy string, generation int64, unseen []stored.UnseenKind) v1.PolicyAudit {
	counts := map[standing]int32{}
	missing := map[policies.Missing]int{}
	for _, signature := range r.signatures {
		for _, one := range signature.standings {
			if one.policy != policy {
				continue
			}
			if what, ok := strings.CutPrefix(string(one.standing), string(standingLacks)); ok {
				missing[policies.Missing(what)] += signature.objects
				counts[standingLacks] += int32(signature.objects) //nolint:gosec // A cluster does not hold that many.
				continue
			}
			counts[one.standing] += int32(signature.objects) //nolint:gosec // As above.
		}
	}
	deny, warn, audit := counts[standing(v1.ActionDeny)], counts[standing(v1.ActionWarn)], counts[standing(v1.ActionAudit)]
	total := deny + warn + audit
	status := v1.PolicyAudit{
		ObservedGeneration: generation,
		Judged:             new(total + counts[standingExcepted] + counts[standingPasses]),
		Violations:         v1.PolicyAuditViolations{Total: &total, Deny: &deny, Warn: &warn, Audit: &audit},
		Summary:            summaryOf(total, counts[standingFailed]+counts[standingLacks], len(unseen) > 0),
		Excepted:           new(counts[standingExcepted]),
		Errors:             new(counts[standingFailed]),
		NotEvaluated:       new(counts[standingLacks]),
		Unseen:             exclusionsOf(unseen),
	}
	var faults []string
	status.Samples, faults = r.samples(policy)
	for _, one := range slices.Sorted(maps.Keys(missing)) {
		faults = append(faults, fmt.Sprintf("not evaluated for %d: %s", missing[one], stored.MissingText(one)))
	}
	status.Message = stored.Shorten(strings.Join(faults, "; "), maxStatusMessage)
	return status
}

// summaryOf is the number of violations, with what keeps it from being that of all
// objects.
func summaryOf(total, unjudged int32, unseen bool) string {
	var lacks []string
	if unjudged > 0 {
		lacks = append(lacks, fmt.Sprintf("%d not judged", unjudged))
	}
	if unseen {
		lacks = append(lacks, "kinds unseen")
	}
	if len(lacks) == 0 {
		return fmt.Sprint(total)
	}
	return fmt.Sprintf("%d (%s)", total, strings.Join(lacks, ", "))
}

// samples are some of the objects that break a policy, the same whatever order
// they were judged in, and why it could not be evaluated for the first that it
// could not be.
func (r *results) samples(policy string) ([]v1.PolicyAuditSample, []string) {
	var broken, failed []*auditedObject
	order := func(a, b *auditedObject) int {
		return cmp.Or(
			cmp.Compare(a.of(policy).standing.rank(), b.of(policy).standing.rank()),
			cmp.Compare(a.kind.GroupKind().String(), b.kind.GroupKind().String()),
			cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name), cmp.Compare(a.uid, b.uid),
		)
	}
	add := func(to []*auditedObject, object *auditedObject, limit int) []*auditedObject {
		at, _ := slices.BinarySearchFunc(to, object, order)
		if at >= limit {
			return to
		}
		to = slices.Insert(to, at, object)
		return to[:min(len(to), limit)]
	}
	for _, object := range r.found {
		switch one := object.of(policy); {
		case one == nil:
		case one.standing.violates():
			broken = add(broken, object, maxSamples)
		case one.standing == standingFailed:
			failed = add(failed, object, 1)
		}
	}
	var samples []v1.PolicyAuditSample
	for _, object := range broken {
		one := object.of(policy)
		worst := one.worst()
		samples = append(samples, v1.PolicyAuditSample{
			Action: v1.PolicyAction(one.standing), Kind: object.kind.GroupKind().String(), Namespace: object.namespace, Name: object.name,
			Field: stored.Shorten(worst.Path, maxSampleText), Message: cmp.Or(stored.Shorten(worst.Message, maxSampleText), "breaks the policy"),
		})
	}
	var faults []string
	for _, object := range failed {
		faults = append(faults, "could not be evaluated for "+object.identity()+": "+object.of(policy).fault)
	}
	return samples, faults
}

// worst is the violation that the standing comes from.
func (r *policyResult) worst() stored.Violation {
	return slices.MinFunc(r.violations, func(a, b stored.Violation) int { return stored.CompareActions(a.Action, b.Action) })
}

func (o *auditedObject) identity() string {
	return stored.Identity(o.kind.GroupKind(), o.namespace, o.name)
}

func exclusionsOf(unseen []stored.UnseenKind) []v1.PolicyExclusion {
	found := make([]v1.PolicyExclusion, 0, len(unseen))
	for _, one := range unseen {
		found = append(found, v1.PolicyExclusion{Subject: stored.Shorten(one.Kind, 253), Reason: stored.Shorten(one.Reason, maxStatusMessage)})
	}
	slices.SortFunc(found, func(a, b v1.PolicyExclusion) int { return cmp.Compare(a.Subject, b.Subject) })
	found = slices.Compact(found)
	if len(found) == 0 {
		return nil
	}
	return found[:min(len(found), maxUnseen)]
}

var (
	violationsDesc = prometheus.NewDesc("penstock_policy_audit_violations",
		"Stored objects that break a policy, by what would become of them if they were written now.", []string{"policy", "action"}, nil)
	objectsDesc = prometheus.NewDesc("penstock_policy_audit_objects",
		"Stored objects that a policy is asked about, by what came of it.", []string{"policy", "outcome"}, nil)
)

// Describe is of prometheus.Collector.
func (*Auditor) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- violationsDesc
	descriptions <- objectsDesc
}

// Collect is of prometheus.Collector: what the status of the policies says.
func (a *Auditor) Collect(collected chan<- prometheus.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, policy := range a.policies {
		if policy.published == nil {
			continue
		}
		result := policy.published
		gauge := func(desc *prometheus.Desc, count *int32, label string) {
			collected <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(ptr.Deref(count, 0)), name, label)
		}
		gauge(violationsDesc, result.Violations.Deny, string(v1.ActionDeny))
		gauge(violationsDesc, result.Violations.Warn, string(v1.ActionWarn))
		gauge(violationsDesc, result.Violations.Audit, string(v1.ActionAudit))
		gauge(objectsDesc, result.Judged, "Judged")
		gauge(objectsDesc, result.Excepted, "Excepted")
		gauge(objectsDesc, result.Errors, "Failed")
		gauge(objectsDesc, result.NotEvaluated, "NotEvaluated")
	}
}
