package validation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (f *findings) tolerations(tolerations []corev1.Toleration, path *field.Path) {
	for i, toleration := range tolerations {
		at := path.Index(i)
		if toleration.Key != "" {
			f.key(at.Child("key"), toleration.Key)
		} else if toleration.Operator != corev1.TolerationOpExists {
			f.invalid(at.Child("operator"), string(toleration.Operator), "must be Exists where there is no key, which tolerates every taint: write it, or name the key")
		}
		switch toleration.Operator {
		case "", corev1.TolerationOpEqual:
			f.labelValue(at.Child("value"), toleration.Value)
		case corev1.TolerationOpExists:
			if toleration.Value != "" {
				f.invalid(at.Child("value"), toleration.Value, "must not be set for operator Exists: remove it, or write Equal")
			}
		case corev1.TolerationOpLt, corev1.TolerationOpGt:
			if _, err := strconv.ParseInt(toleration.Value, 10, 64); err != nil {
				f.invalid(at.Child("value"), toleration.Value, "must be a whole number for this operator: write it as \"10\"")
			}
		default:
			oneOf(f, at.Child("operator"), toleration.Operator, corev1.TolerationOpExists, corev1.TolerationOpEqual)
		}
		oneOf(f, at.Child("effect"), toleration.Effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
		if toleration.TolerationSeconds != nil && toleration.Effect != corev1.TaintEffectNoExecute {
			f.invalid(at.Child("effect"), string(toleration.Effect), "must be NoExecute where tolerationSeconds is set: write it, or remove tolerationSeconds")
		}
	}
}

func (f *findings) affinity(affinity *corev1.Affinity, path *field.Path) {
	if affinity == nil {
		return
	}
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	if node := affinity.NodeAffinity; node != nil {
		at := path.Child("nodeAffinity")
		if terms := node.RequiredDuringSchedulingIgnoredDuringExecution; terms != nil {
			if len(terms.NodeSelectorTerms) == 0 {
				f.required(at.Child(required, "nodeSelectorTerms"), "no node would do: write a term, or leave it out")
			}
			for i := range terms.NodeSelectorTerms {
				f.nodeTerm(&terms.NodeSelectorTerms[i], true, at.Child(required, "nodeSelectorTerms").Index(i))
			}
		}
		for i := range node.PreferredDuringSchedulingIgnoredDuringExecution {
			term := &node.PreferredDuringSchedulingIgnoredDuringExecution[i]
			f.weight(term.Weight, at.Child(preferred).Index(i))
			f.nodeTerm(&term.Preference, false, at.Child(preferred).Index(i).Child("preference"))
		}
	}
	if pods := affinity.PodAffinity; pods != nil {
		at := path.Child("podAffinity")
		f.podTerms(pods.RequiredDuringSchedulingIgnoredDuringExecution, at.Child(required))
		f.weightedTerms(pods.PreferredDuringSchedulingIgnoredDuringExecution, at.Child(preferred))
	}
	if pods := affinity.PodAntiAffinity; pods != nil {
		at := path.Child("podAntiAffinity")
		f.podTerms(pods.RequiredDuringSchedulingIgnoredDuringExecution, at.Child(required))
		f.weightedTerms(pods.PreferredDuringSchedulingIgnoredDuringExecution, at.Child(preferred))
	}
}

func (f *findings) weight(weight int32, path *field.Path) {
	f.between(path.Child("weight"), int64(weight), 1, 100, "say how much the wish counts")
}

// nodeTerm judges a choice of nodes. The values of wishes are not judged: one
// that no node can have is a wish that cannot come true.
func (f *findings) nodeTerm(term *corev1.NodeSelectorTerm, values bool, path *field.Path) {
	for i, expression := range term.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		f.key(at.Child("key"), expression.Key)
		f.expression(string(expression.Operator), len(expression.Values), true, at)
		for j, value := range expression.Values {
			if values {
				f.labelValue(at.Child("values").Index(j), value)
			}
		}
	}
	for i, expression := range term.MatchFields {
		at := path.Child("matchFields").Index(i)
		if expression.Key != metav1.ObjectNameField {
			f.invalid(at.Child("key"), expression.Key, "must be metadata.name, the only field that nodes are chosen by: write it, or use matchExpressions")
		}
		if expression.Operator == "" {
			f.required(at.Child("operator"), "write In or NotIn")
		}
		oneOf(f, at.Child("operator"), expression.Operator, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn)
		if len(expression.Values) != 1 {
			f.required(at.Child("values"), "name exactly one node")
		}
	}
}

// expression judges the operator of a selector by the number of its values.
func (f *findings) expression(operator string, values int, compares bool, path *field.Path) {
	known := []string{"In", "NotIn", "Exists", "DoesNotExist"}
	if compares {
		known = append(known, "Gt", "Lt")
	}
	switch {
	case operator == "":
		f.required(path.Child("operator"), "write one of In, NotIn, Exists and DoesNotExist")
	case !slices.Contains(known, operator):
		f.errs = append(f.errs, notAmong(path.Child("operator"), operator, known))
	case (operator == "In" || operator == "NotIn") && values == 0:
		f.required(path.Child("values"), fmt.Sprintf("operator %s needs values: write at least one", operator))
	case (operator == "Exists" || operator == "DoesNotExist") && values > 0:
		f.forbidden(path.Child("values"), fmt.Sprintf("must not be set for operator %s: remove them, or write In", operator))
	case (operator == "Gt" || operator == "Lt") && values != 1:
		f.required(path.Child("values"), fmt.Sprintf("operator %s needs exactly one value: write a number", operator))
	}
}

func (f *findings) weightedTerms(terms []corev1.WeightedPodAffinityTerm, path *field.Path) {
	for i := range terms {
		f.weight(terms[i].Weight, path.Index(i))
		f.podTerm(&terms[i].PodAffinityTerm, path.Index(i).Child("podAffinityTerm"))
	}
}

func (f *findings) podTerms(terms []corev1.PodAffinityTerm, path *field.Path) {
	for i := range terms {
		f.podTerm(&terms[i], path.Index(i))
	}
}

func (f *findings) podTerm(term *corev1.PodAffinityTerm, path *field.Path) {
	f.topologyKey(term.TopologyKey, path.Child("topologyKey"))
	f.selector(term.LabelSelector, path.Child("labelSelector"))
	f.selector(term.NamespaceSelector, path.Child("namespaceSelector"))
	for i, namespace := range term.Namespaces {
		f.label(path.Child("namespaces").Index(i), namespace)
	}
	f.labelKeys(term.MatchLabelKeys, term.LabelSelector, path.Child("matchLabelKeys"))
	f.labelKeys(term.MismatchLabelKeys, term.LabelSelector, path.Child("mismatchLabelKeys"))
}

// labelKeys judges the keys whose values of the pod itself join a selector.
func (f *findings) labelKeys(keys []string, selector *metav1.LabelSelector, path *field.Path) {
	if len(keys) > 0 && selector == nil {
		f.forbidden(path, "needs a labelSelector beside it: write one, or remove it")
	}
	for i, key := range keys {
		f.key(path.Index(i), key)
	}
}

func (f *findings) topologyKey(key string, path *field.Path) {
	if key == "" {
		f.required(path, "name the node label whose values are the domains: write it as topology.kubernetes.io/zone")
		return
	}
	f.key(path, key)
}

func (f *findings) selector(selector *metav1.LabelSelector, path *field.Path) {
	if selector == nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		f.key(path.Child("matchLabels"), key)
		f.labelValue(path.Child("matchLabels").Key(key), selector.MatchLabels[key])
	}
	for i, expression := range selector.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		f.key(at.Child("key"), expression.Key)
		f.expression(string(expression.Operator), len(expression.Values), false, at)
		for j, value := range expression.Values {
			f.labelValue(at.Child("values").Index(j), value)
		}
	}
}

func (f *findings) spread(constraints []corev1.TopologySpreadConstraint, path *field.Path) {
	type kind struct {
		key    string
		action corev1.UnsatisfiableConstraintAction
	}
	seen := map[kind]bool{}
	for i, constraint := range constraints {
		at := path.Index(i)
		f.atLeast(at.Child("maxSkew"), int64(constraint.MaxSkew), 1, "say by how many pods domains may differ")
		if constraint.TopologyKey == "" {
			f.topologyKey("", at.Child("topologyKey"))
		}
		if constraint.WhenUnsatisfiable == "" {
			f.required(at.Child("whenUnsatisfiable"), "write DoNotSchedule or ScheduleAnyway")
		}
		oneOf(f, at.Child("whenUnsatisfiable"), constraint.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)
		if constraint.MinDomains != nil {
			f.atLeast(at.Child("minDomains"), int64(*constraint.MinDomains), 1, "give a number of domains, or leave it out")
			if constraint.WhenUnsatisfiable == corev1.ScheduleAnyway {
				f.invalid(at.Child("minDomains"), *constraint.MinDomains, "is only for whenUnsatisfiable DoNotSchedule: remove it")
			}
		}
		for child, policy := range map[string]*corev1.NodeInclusionPolicy{"nodeAffinityPolicy": constraint.NodeAffinityPolicy, "nodeTaintsPolicy": constraint.NodeTaintsPolicy} {
			if policy != nil {
				oneOf(f, at.Child(child), *policy, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
			}
		}
		f.selector(constraint.LabelSelector, at.Child("labelSelector"))
		f.labelKeys(constraint.MatchLabelKeys, constraint.LabelSelector, at.Child("matchLabelKeys"))
		if k := (kind{constraint.TopologyKey, constraint.WhenUnsatisfiable}); seen[k] {
			f.duplicate(at, constraint.TopologyKey, "is spread over already: remove one of the two")
		} else {
			seen[k] = true
		}
	}
}
