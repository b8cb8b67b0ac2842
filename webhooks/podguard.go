package webhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/webhooks/cel"
)

// barsPods refuses a policy that every pod would have to wait for: should no
// Penstock answer, neither would the network, DNS or storage of the cluster
// start, on which Penstock may depend. Where it may be so and may not, it gives
// advice.
func barsPods(ctx context.Context, spec *v1.WorkloadPolicySpec) (refused, advice field.ErrorList) {
	if spec.FailurePolicy == v1.FailurePolicyIgnore {
		return nil, nil
	}
	spared, names := sparesSystem(spec)
	if spared {
		return nil, nil
	}
	path := field.NewPath("spec", "matchConditions")
	for _, step := range stepsOf(&spec.Match) {
		held := askOnStart(ctx, spec, step)
		switch {
		case held.plain != "" && names != nil:
			if !slices.ContainsFunc(names, looksSystem) {
				advice = append(advice, field.Forbidden(field.NewPath("spec", "match", "namespaceSelector"), fmt.Sprintf(
					"leaves out %s alone: while no Penstock answers, the pods of all other namespaces wait, those of the cluster's own start among them, such as %s: "+
						"name these namespaces too, or select those of workloads by a label they have", strings.Join(names, ", "), plainName)))
			}
			return nil, advice
		case held.plain != "":
			return field.ErrorList{field.Required(path, refusal(spec, step, held.plain))}, nil
		case held.marked != "":
			advice = append(advice, field.Forbidden(path, fmt.Sprintf(
				"they hold for pods like those of the cluster's own start, such as %s with %s, which then wait while no Penstock answers: "+
					"let them fail for these, or select the namespaces of workloads by a label they have (match.namespaceSelector)", plainName, held.marked)))
		case held.fault != nil && held.fault.Fix != cel.GuardOldObject: // That is told of all kinds.
			fault, fix := held.fault.FailedCondition()
			advice = append(advice, field.Forbidden(path, fmt.Sprintf(
				"%s for a pod with %s, and keeps every such pod from being made, whether Penstock answers or not: %s", fault, held.faultOf, fix)))
		}
	}
	return nil, advice
}

const plainName = "plugin-x7k2p in namespace " + pluginNamespace

// refusal says why a policy is refused that is asked about a plain pod.
func refusal(spec *v1.WorkloadPolicySpec, step podStep, plain string) string {
	text := "a policy on pods that fails closed needs a condition that leaves the pods of the cluster's own start alone, such as one on the resources they ask for"
	if len(spec.MatchConditions) > 0 {
		text += fmt.Sprintf(", and these hold for one that asks for nothing special, %s with %s", plainName, plain)
	}
	add := "add " + exampleGuard(&spec.Match)
	if step.fix != "" {
		add = step.fix
	}
	return text + ": " + add + ", select the namespaces of workloads by a label they have (match.namespaceSelector), set failurePolicy to Ignore, " +
		"or have the operator name the system namespaces (--system-namespaces)"
}

// exampleGuard is a condition for the kinds of a policy.
func exampleGuard(match *v1.PolicyMatch) string {
	guard := "object.spec.containers.exists(c, has(c.resources.limits) && 'nvidia.com/gpu' in c.resources.limits)"
	if len(match.Resources) > 1 || len(match.Resources[0].Kinds) > 1 || slices.Contains(match.Resources[0].Kinds, "*") {
		return "request.kind.kind != 'Pod' || " + guard
	}
	return guard
}

// startOutcome says for which of the pods of a cluster's start a policy is asked.
type startOutcome struct {
	// plain tells of a pod for which it is, with whatever pods of a cluster's start
	// may have by which they could be told apart, and without; marked of one for
	// which it is by that; empty if there is none.
	plain, marked string
	// fault is that of a condition for a plain pod, faultOf which.
	fault   *cel.Error
	faultOf string
}

// askOnStart evaluates the conditions of a policy for a step of the pods of a
// cluster's start. What reads more than can be known here, such as the rights of a
// user, holds for none.
func askOnStart(ctx context.Context, spec *v1.WorkloadPolicySpec, step podStep) startOutcome {
	var found startOutcome
	for _, plain := range plainPods() {
		holds, fault := holdsOnStart(ctx, spec, step, plain)
		if fault != nil && found.fault == nil {
			found.fault, found.faultOf = fault, plain.text
		}
		// An author who leaves out some of these has thought of them.
		told := func(namespace string) int {
			return slices.IndexFunc(plain.markedPods(namespace), func(marked plainPod) bool {
				holds, _ := holdsOnStart(ctx, spec, step, marked)
				return !holds
			})
		}
		if holds && told(metav1.NamespaceSystem) < 0 {
			found.plain = plain.text
			return found
		}
		for _, marked := range plain.markedPods(pluginNamespace) {
			if markedHolds, _ := holdsOnStart(ctx, spec, step, marked); markedHolds && !holds && found.marked == "" {
				found.marked = marked.text
			}
		}
	}
	return found
}

// holdsOnStart reports whether all conditions of a policy hold for a pod.
func holdsOnStart(ctx context.Context, spec *v1.WorkloadPolicySpec, step podStep, pod plainPod) (bool, *cel.Error) {
	if len(spec.MatchConditions) == 0 {
		return true, nil
	}
	holds, err := cel.Hold(ctx, spec.MatchConditions, step.asked(pod), cel.Requester{Known: true})
	fault, _ := errors.AsType[*cel.Error](err)
	return holds && err == nil, fault
}

// sparesSystem reports whether the policy selects namespaces in such a way that
// those of the cluster's own start are not among them, by a label that must be
// there; names are those that it leaves out by name.
func sparesSystem(spec *v1.WorkloadPolicySpec) (spared bool, names []string) {
	from := policies.EntrySelector(spec)
	if from == nil {
		return false, nil
	}
	for _, one := range from.MatchExpressions {
		if one.Key == corev1.LabelMetadataName && one.Operator == metav1.LabelSelectorOpNotIn {
			names = append(names, one.Values...)
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(from)
	// No namespace has such a name, and so none that the policy names.
	return err == nil && !selector.Matches(labels.Set{corev1.LabelMetadataName: "*"}), names
}

// looksSystem reports whether a namespace is called as those of clusters are.
func looksSystem(name string) bool {
	return strings.Contains(name, "system") || strings.HasPrefix(name, "kube-") || strings.HasPrefix(name, "openshift")
}
