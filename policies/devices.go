package policies

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// device is an extended resource that a container names.
type device struct {
	container container
	name      *ast.Term
	// written and amounts hold limits and requests, in this order; nil where
	// there is none, or no number.
	written [2]*ast.Term
	amounts [2]*ast.Term
}

var resourceLists = [2]*ast.Term{keyLimits, keyRequests}

func (d *device) term() *ast.Term {
	return ast.ObjectTerm(
		ast.Item(keyRole, d.container.role.name),
		ast.Item(keyPath, ast.StringTerm(d.container.path)),
		ast.Item(keyName, d.name),
		ast.Item(keyWritten, listsTerm(d.written)),
		ast.Item(keyAmounts, listsTerm(d.amounts)),
	)
}

func listsTerm(values [2]*ast.Term) *ast.Term {
	var pairs [2][2]*ast.Term
	n := 0
	for i, value := range values {
		if value != nil {
			pairs[n] = ast.Item(resourceLists[i], value)
			n++
		}
	}
	return ast.ObjectTerm(pairs[:n]...)
}

// findDevices finds the devices of all containers and the names of all
// resources.
func (w *workload) findDevices() {
	for _, c := range w.containers {
		lists := [2]ast.Object{}
		var names []*ast.Term
		for i, key := range resourceLists {
			resources := get(c.spec, "resources")
			if !isObject(resources) {
				continue
			}
			list := resources.Value.(ast.Object).Get(key)
			if !isObject(list) {
				continue
			}
			lists[i] = list.Value.(ast.Object)
			names = append(names, lists[i].Keys()...)
		}
		w.resourceNames = append(w.resourceNames, names...)
		// A set is how the definition orders them.
		for _, name := range ast.NewSet(names...).Slice() {
			if isExtended(textOf(name)) {
				w.devices = append(w.devices, deviceOf(c, name, lists))
			}
		}
	}
}

func deviceOf(c container, name *ast.Term, lists [2]ast.Object) device {
	found := device{container: c, name: name}
	for i, list := range lists {
		if list == nil {
			continue
		}
		if value := list.Get(name); value != nil {
			found.written[i] = value
			found.amounts[i] = quantity(value)
		}
	}
	return found
}

// isExtended reports whether a resource belongs to a device plugin.
func isExtended(name string) bool {
	return strings.Contains(name, "/") && !strings.Contains(name, "kubernetes.io/")
}

// podTerm counts the devices that one pod of a role needs.
func (w *workload) podTerm(r *role) *ast.Term {
	demand := ast.NewObject()
	for _, d := range w.devices {
		if strings.HasPrefix(d.container.path, r.podPath+".") && demand.Get(d.name) == nil {
			demand.Insert(d.name, podDemand(r.pod, d.name))
		}
	}
	return ast.ObjectTerm(
		ast.Item(keyClaims, claimsOf(r)),
		ast.Item(keyRole, r.name),
		ast.Item(keyReplicas, r.replicas),
		ast.Item(keyReplicasPath, ast.StringTerm(r.replicasPath)),
		ast.Item(keyPodPath, ast.StringTerm(r.podPath)),
		ast.Item(keyDemand, ast.NewTerm(demand)),
	)
}

func claimsOf(r *role) *ast.Term {
	claims := 0
	if list := get(r.pod, "resourceClaims"); list != nil {
		if array, ok := list.Value.(*ast.Array); ok {
			claims = array.Len()
		}
	}
	return ast.InternedTerm(claims)
}

// podDemand is the larger of what runs at the same time: the containers with
// all sidecars, or an init container with the sidecars that started before it.
func podDemand(pod, name *ast.Term) *ast.Term {
	var running, sidecars []*ast.Term
	for _, c := range listOf(get(pod, "containers")) {
		running = append(running, amount(c, name))
	}
	candidates := []*ast.Term{zero}
	for _, c := range listOf(get(pod, "initContainers")) {
		if isSidecar(c) {
			sidecars = append(sidecars, amount(c, name))
			continue
		}
		candidates = append(candidates, total([]*ast.Term{amount(c, name), total(sidecars)}))
	}
	candidates = append(candidates, total(append(running, sidecars...)))
	return largest(candidates...)
}

func total(amounts []*ast.Term) *ast.Term {
	if sum, ok := smallTotal(amounts); ok {
		return ast.InternedTerm(sum)
	}
	return call("sum", ast.ArrayTerm(append([]*ast.Term(nil), amounts...)...))
}

// smallNumber is one whose sums and products are exact in an int, whatever
// there is to be counted.
const smallNumber = 1 << 24

// small returns a whole number that is not large, which is nearly all that there
// is to count, and whether a value is one.
func small(value *ast.Term) (int, bool) {
	number, ok := value.Value.(ast.Number)
	if !ok {
		return 0, false
	}
	n, ok := number.Int()
	return n, ok && n > -smallNumber && n < smallNumber && len(number) <= 8
}

func smallTotal(amounts []*ast.Term) (int, bool) {
	sum := 0
	for _, amount := range amounts {
		n, ok := small(amount)
		if !ok {
			return 0, false
		}
		sum += n
	}
	return sum, true
}

// times is a product.
func times(a, b *ast.Term) *ast.Term {
	m, small1 := small(a)
	if n, small2 := small(b); small1 && small2 {
		return ast.InternedTerm(m * n)
	}
	return call("mul", a, b)
}

// largest is the largest of some numbers.
func largest(numbers ...*ast.Term) *ast.Term {
	most := numbers[0]
	for _, number := range numbers[1:] {
		if number.Value.Compare(most.Value) > 0 {
			most = number
		}
	}
	return most
}

// amount is the limit, which the request of an extended resource must equal,
// or the request where there is no limit.
func amount(container, name *ast.Term) *ast.Term {
	for _, key := range resourceLists {
		list := get(container, "resources")
		if !isObject(list) {
			return zero
		}
		list = list.Value.(ast.Object).Get(key)
		if !isObject(list) {
			continue
		}
		if value := list.Value.(ast.Object).Get(name); value != nil {
			if n := quantity(value); n != nil {
				return n
			}
		}
	}
	return zero
}

var (
	plainQuantity    = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?$`)
	suffixedQuantity = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)$`)
)

// quantity is the value of a Kubernetes quantity, nil for what is none.
func quantity(value *ast.Term) *ast.Term {
	if isNumber(value) {
		return value
	}
	text := textOf(value)
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n < smallNumber && strconv.Itoa(n) == text {
		return ast.InternedTerm(n)
	}
	switch {
	case plainQuantity.MatchString(text):
		return call("to_number", value)
	case suffixedQuantity.MatchString(text):
		return call("units.parse", value)
	}
	return nil
}

// call calls a builtin of Rego, so that numbers come out digit by digit
// as they do there; nil when it fails.
func call(builtin string, operands ...*ast.Term) *ast.Term {
	var result *ast.Term
	_ = topdown.GetBuiltin(builtin)(topdown.BuiltinContext{}, operands, func(found *ast.Term) error {
		result = found
		return nil
	})
	return result
}
