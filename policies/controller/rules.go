package controller

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/stored"
	"github.com/penstock-dev/penstock/webhooks/cel"
)

// wildcard stands for every group, kind or subresource.
const wildcard = "*"

// notNever is the condition that keeps wildcard rules from what is never asked
// about, be it by the kind of what is written to a subresource, as a TokenRequest
// is to one of service accounts. Without conditions of their own the policies of an entry are asked about
// Penstock's kinds by the webhooks of these.
func notNever(id policies.Entry) admissionregistrationv1.MatchCondition {
	own := "request.resource.group == '" + v1.GroupName + "'"
	if id.Conditional() {
		own += " && request.operation == 'DELETE'"
	}
	groups := celList(slices.Sorted(maps.Keys(policies.ExemptGroups())))
	return admissionregistrationv1.MatchCondition{
		Name: "penstock-not-never",
		Expression: "!(request.resource.group in " + groups + ") && !(request.kind.group in " + groups + ") && " +
			"!(request.resource.group + '/' + request.resource.resource in " + celList(exemptNames()) + ") && !(" + own + ")",
	}
}

func exemptNames() []string {
	var names []string
	for resource := range policies.ExemptResources() {
		names = append(names, resource.Group+"/"+resource.Resource)
	}
	slices.Sort(names)
	return names
}

func celList(texts []string) string {
	return "['" + strings.Join(texts, "', '") + "']"
}

// RulesOptions are what the rules of the webhook configuration depend on beside
// the policies.
type RulesOptions struct {
	// Namespace is where Penstock runs. Neither it nor kube-system nor any of
	// SystemNamespaces is ever behind Penstock.
	Namespace        string
	SystemNamespaces []string
	// Client gives how the API server calls a path, as it calls the webhooks of
	// Penstock's own kinds.
	Client func(path string) admissionregistrationv1.WebhookClientConfig
	// JudgePath is the path of requests to judge, less the entry; ProbePath that
	// of the probe.
	JudgePath, ProbePath string
	// Spelling gives the name of a kind that is served and was spelt otherwise;
	// nil where that is not known.
	Spelling func(schema.GroupKind) string
}

// Rules gives the webhooks that ask the policies about kinds outside
// penstock.dev, and about all kinds where they have match conditions: one for
// each entry, sorted by name, and last the one that answers probes. There are
// none if no policy needs them. It also gives the coverage of each policy. It is
// an error if it cannot be told which kinds are served.
func Rules(all []*v1.WorkloadPolicy, mapper stored.KindMapper, options RulesOptions) ([]admissionregistrationv1.ValidatingWebhook, map[string]Coverage, error) {
	entries := map[policies.Entry]*entryRules{}
	coverages := make(map[string]Coverage, len(all))
	mapper = stored.AskOnce(mapper)
	for _, policy := range all {
		collected := collect(policy, mapper, options)
		if collected.err != nil {
			return nil, nil, collected.err
		}
		coverage := collected.coverage
		if len(collected.rules) > 0 {
			coverage.Dynamic = true
			for _, namespace := range options.Excluded() {
				coverage.Exclusions = append(coverage.Exclusions, v1.PolicyExclusion{
					Subject: "namespace " + namespace, Reason: policies.ReasonSystemNamespace,
				})
			}
			id := policies.EntryOf(&policy.Spec)
			entry := entries[id]
			if entry == nil {
				entry = &entryRules{conditions: policy.Spec.MatchConditions, selector: policies.EntrySelector(&policy.Spec)}
				entries[id] = entry
			}
			entry.rules = append(entry.rules, collected.rules...)
			entry.wildcards = entry.wildcards || collected.wildcards
		}
		coverages[policy.Name] = coverage
	}
	var webhooks []admissionregistrationv1.ValidatingWebhook
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		webhooks = append(webhooks, options.webhook(id, entries[id]))
	}
	if len(webhooks) > 0 {
		webhooks = append(webhooks, options.probe(fingerprint(webhooks)))
	}
	return webhooks, coverages, nil
}

// entryRules are the rules of the policies of one entry.
type entryRules struct {
	conditions []admissionregistrationv1.MatchCondition
	// selector is that of the policies' namespaces; nil selects all.
	selector  *metav1.LabelSelector
	rules     []admissionregistrationv1.RuleWithOperations
	wildcards bool
}

// Excluded lists the namespaces that are never behind Penstock for kinds outside
// penstock.dev.
func (o RulesOptions) Excluded() []string {
	names := append([]string{metav1.NamespaceSystem, o.Namespace}, o.SystemNamespaces...)
	slices.Sort(names)
	return slices.Compact(names)
}

// Reach is what policies are asked about.
func (o RulesOptions) Reach() *policies.Reach { return &policies.Reach{Unasked: o.Excluded()} }

func (o RulesOptions) webhook(id policies.Entry, entry *entryRules) admissionregistrationv1.ValidatingWebhook {
	failurePolicy := admissionregistrationv1.Fail
	if id.FailurePolicy() == v1.FailurePolicyIgnore {
		failurePolicy = admissionregistrationv1.Ignore
	}
	conditions := cel.Sent(entry.conditions, askedOf(entry.rules))
	if entry.wildcards {
		conditions = append(conditions, notNever(id))
	}
	webhook := o.base(string(id)+".policies.penstock.dev", o.JudgePath+string(id), failurePolicy)
	webhook.Rules = merged(entry.rules)
	webhook.MatchConditions = conditions
	if entry.selector != nil {
		webhook.NamespaceSelector = entry.selector.DeepCopy()
	}
	webhook.NamespaceSelector.MatchExpressions = append(webhook.NamespaceSelector.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: o.Excluded(),
	})
	return webhook
}

// askedOf is what rules ask about beside whole objects that are written.
func askedOf(rules []admissionregistrationv1.RuleWithOperations) cel.Asked {
	var asked cel.Asked
	for _, rule := range rules {
		asked.Deletes = asked.Deletes || slices.Contains(rule.Operations, admissionregistrationv1.Delete) || slices.Contains(rule.Operations, admissionregistrationv1.OperationAll)
		asked.Scales = asked.Scales || slices.ContainsFunc(rule.Resources, func(resource string) bool {
			_, subresource, _ := strings.Cut(resource, "/")
			return subresource == "scale" || subresource == wildcard
		})
	}
	return asked
}

// probe is the webhook that refuses an object that nobody creates: whoever asks
// the API server to, and is refused, knows that it works by this configuration.
func (o RulesOptions) probe(fingerprint string) admissionregistrationv1.ValidatingWebhook {
	webhook := o.base("probe.policies.penstock.dev", o.ProbePath, admissionregistrationv1.Fail)
	scope := admissionregistrationv1.NamespacedScope
	webhook.Rules = []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}, Scope: &scope,
		},
	}}
	webhook.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: o.Namespace}}
	webhook.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{v1.ProbeLabel: fingerprint}}
	return webhook
}

// base has every field set that the API server would default, so that what is
// read back is what was written.
func (o RulesOptions) base(name, path string, failurePolicy admissionregistrationv1.FailurePolicyType) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    name,
		ClientConfig:            o.Client(path),
		FailurePolicy:           &failurePolicy,
		MatchPolicy:             new(admissionregistrationv1.Equivalent),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          new(int32(10)),
		AdmissionReviewVersions: []string{"v1"},
		NamespaceSelector:       &metav1.LabelSelector{},
		ObjectSelector:          &metav1.LabelSelector{},
	}
}

// fingerprint identifies webhooks, whatever authority they trust.
func fingerprint(webhooks []admissionregistrationv1.ValidatingWebhook) string {
	stripped := slices.Clone(webhooks)
	for i := range stripped {
		stripped[i].ClientConfig.CABundle = nil
	}
	// Webhooks are made of strings and numbers, which encode always.
	raw, _ := json.Marshal(stripped)
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
