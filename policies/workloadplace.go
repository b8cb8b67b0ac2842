package policies

import (
	"slices"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"
)

// What the shared library says of where pods can land.

// wishes are what pods ask nodes for, each once: a device whose name matches
// patterns, how many, and the node selector.
func (w *workload) wishes(patterns *ast.Term) *ast.Term {
	list, ok := patternsOf(patterns)
	if !ok {
		return nil
	}
	wishes := ast.NewSet()
	for i := range w.roles {
		selector := get(w.roles[i].pod, "nodeSelector")
		if !isObject(selector) {
			selector = ast.InternedEmptyObject
		}
		for _, need := range w.roles[i].demand() {
			name, needs := need[0], need[1]
			if matches(list, textOf(name)) && needs.Value.Compare(zero.Value) > 0 {
				wishes.Add(ast.ObjectTerm(ast.Item(keyName, name), ast.Item(keyNeeds, needs), ast.Item(keySelector, selector)))
			}
		}
	}
	return ast.NewTerm(wishes)
}

// untolerated pairs each role that asks for tainted devices with the taint that
// its pods do not tolerate.
func (w *workload) untolerated(taints *ast.Term) *ast.Term {
	list, ok := taints.Value.(*ast.Array)
	if !ok || list.Until(func(taint *ast.Term) bool { return !isTaint(taint) }) {
		return nil
	}
	var pairs []*ast.Term
	for i := range w.roles {
		for _, taint := range listOf(taints) {
			resources, _ := patternsOf(get(taint, "resources"))
			if w.roles[i].demandFor(resources).Value.Compare(zero.Value) > 0 && !tolerates(w.roles[i].pod, taint) {
				pairs = append(pairs, ast.ObjectTerm(ast.Item(keyRole, w.roles[i].term()), ast.Item(keyTaint, taint)))
			}
		}
	}
	return ast.ArrayTerm(pairs...)
}

func isTaint(taint *ast.Term) bool {
	resources := get(taint, "resources")
	if resources == nil {
		return false
	}
	_, ok := patternsOf(resources)
	return ok && isText(get(taint, "key")) && isText(get(taint, "effect"))
}

func isText(value *ast.Term) bool {
	return value != nil && ast.TermValueIs[ast.String](value)
}

func tolerates(pod, taint *ast.Term) bool {
	return slices.ContainsFunc(listOf(get(pod, "tolerations")), func(toleration *ast.Term) bool {
		return isObject(toleration) && isEmptyOr(get(toleration, "key"), get(taint, "key")) &&
			isEmptyOr(get(toleration, "effect"), get(taint, "effect")) && toleratesValue(toleration, taint)
	})
}

func isEmptyOr(value, wanted *ast.Term) bool {
	return value == nil || value.Equal(ast.InternedEmptyString) || value.Equal(wanted)
}

// toleratesValue holds for every value of a taint whose value is not known. No
// key stands for every key, and only with Exists.
func toleratesValue(toleration, taint *ast.Term) bool {
	operator := or(get(toleration, "operator"), equalOperator)
	if textOf(operator) == "Exists" {
		return true
	}
	key, value := get(toleration, "key"), or(get(toleration, "value"), ast.InternedEmptyString)
	return operator.Equal(equalOperator) && key != nil && key.Equal(get(taint, "key")) &&
		value.Equal(or(get(taint, "value"), value))
}

var equalOperator = ast.StringTerm("Equal")

// mispinned pairs each role that asks for devices with a node label that its
// pods insist on although the nodes that offer the devices do not carry it.
func (w *workload) mispinned(rows *ast.Term) *ast.Term {
	list, ok := rows.Value.(*ast.Array)
	if !ok || list.Until(func(row *ast.Term) bool { return !isPinRow(row) }) {
		return nil
	}
	var found []*ast.Term
	for i := range w.roles {
		for _, pin := range pinsOf(w.roles[i].pod) {
			list.Foreach(func(row *ast.Term) {
				resources, _ := patternsOf(get(row, "resources"))
				if pin.fits(row) && w.roles[i].demandFor(resources).Value.Compare(zero.Value) > 0 {
					found = append(found, ast.ObjectTerm(
						ast.Item(keyRole, w.roles[i].term()), ast.Item(keyRow, row), ast.Item(keyPin, pin.term())))
				}
			})
		}
	}
	return ast.ArrayTerm(found...)
}

func isPinRow(row *ast.Term) bool {
	resources, labels, values := get(row, "resources"), get(row, "labels"), get(row, "values")
	if resources == nil || labels == nil {
		return false
	}
	_, ok := patternsOf(resources)
	_, sound := textsOf(labels)
	return ok && sound && (values == nil || ast.TermValueIs[*ast.Array](values))
}

// pin is a label that nodes must carry for a pod to land there.
type pin struct {
	key    *ast.Term
	values *ast.Array
	field  string
}

func (p pin) term() *ast.Term {
	return ast.ObjectTerm(
		ast.Item(keyKey, p.key), ast.Item(keyValues, ast.NewTerm(p.values)), ast.Item(keyField, ast.StringTerm(p.field)))
}

// fits reports whether a row is about the label, and about all of its values.
func (p pin) fits(row *ast.Term) bool {
	labels, _ := patternsOf(get(row, "labels"))
	key, ok := p.key.Value.(ast.String)
	if !ok || !matches(labels, string(key)) {
		return false
	}
	values := get(row, "values")
	if values == nil {
		return true
	}
	return !p.values.Until(func(value *ast.Term) bool { return !values.Value.(*ast.Array).Until(value.Equal) })
}

const affinityTerms = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"

// pinsOf are the labels that a pod insists on. Terms of an affinity are
// alternatives; where there are several, none is a must.
func pinsOf(pod *ast.Term) []pin {
	var pins []pin
	if selector := get(pod, "nodeSelector"); isObject(selector) {
		selector.Value.(ast.Object).Foreach(func(key, value *ast.Term) {
			pins = append(pins, pin{key, ast.NewArray(value), "nodeSelector[" + textOf(key) + "]"})
		})
	}
	terms := listOf(get(pod, affinityTerms))
	if len(terms) != 1 {
		return pins
	}
	for i, expression := range listOf(get(terms[0], "matchExpressions")) {
		key, values := get(expression, "key"), pinnedValues(expression)
		if key != nil && values != nil {
			pins = append(pins, pin{key, values, affinityTerms + "[0].matchExpressions[" + strconv.Itoa(i) + "]"})
		}
	}
	return pins
}

// pinnedValues are the values that will do, nil where that is open. A label
// that must not be there is as good as false.
func pinnedValues(expression *ast.Term) *ast.Array {
	switch textOf(get(expression, "operator")) {
	case "In":
		if values := get(expression, "values"); values != nil {
			list, _ := values.Value.(*ast.Array)
			return list
		}
	case "DoesNotExist":
		return absentValues
	}
	return nil
}

var absentValues = ast.NewArray(ast.StringTerm("false"))
