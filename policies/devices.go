package policies

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// device is an extended resource that a container names.
type device struct {
	container *container
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
	for i := range w.containers {
		c := &w.containers[i]
		lists := resourcesOf(c.spec)
		names := namesOf(lists)
		w.resourceNames = append(w.resourceNames, names...)
		first := len(w.devices)
		for _, name := range names {
			if isExtended(textOf(name)) {
				w.devices = append(w.devices, deviceOf(c, name, lists))
			}
		}
		// A set is how the definition orders them.
		slices.SortFunc(w.devices[first:], func(a, b device) int { return a.name.Value.Compare(b.name.Value) })
	}
	w.shareDevices()
}

// resourcesOf are the limits and requests of a container; nil where it has none.
func resourcesOf(container *ast.Term) (lists [2]ast.Object) {
	resources := get(container, "resources")
	if !isObject(resources) {
		return lists
	}
	for i, key := range resourceLists {
		if list := resources.Value.(ast.Object).Get(key); isObject(list) {
			lists[i] = list.Value.(ast.Object)
		}
	}
	return lists
}

// namesOf are the names in two lists of resources, each once.
func namesOf(lists [2]ast.Object) []*ast.Term {
	var names []*ast.Term
	for i, list := range lists {
		if list == nil {
			continue
		}
		names = slices.Grow(names, list.Len())
		list.Foreach(func(name, _ *ast.Term) {
			if i == 0 || lists[0] == nil || lists[0].Get(name) == nil {
				names = append(names, name)
			}
		})
	}
	return names
}

// shareDevices gives each role its part of the devices, which are in the order of
// the roles.
func (w *workload) shareDevices() {
	rest := w.devices
	for i := range w.roles {
		n := 0
		for n < len(rest) && rest[n].container.role == &w.roles[i] {
			n++
		}
		w.roles[i].devices, rest = rest[:n], rest[n:]
	}
}

func deviceOf(c *container, name *ast.Term, lists [2]ast.Object) device {
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
	return ast.ObjectTerm(
		ast.Item(keyClaims, claimsOf(r)),
		ast.Item(keyRole, r.name),
		ast.Item(keyReplicas, r.replicas),
		ast.Item(keyReplicasPath, ast.StringTerm(r.replicasPath)),
		ast.Item(keyPodPath, ast.StringTerm(r.podPath)),
		ast.Item(keyDemand, ast.ObjectTerm(r.demand()...)),
	)
}

// demand is what one pod of the role needs of each device: names with numbers, in
// the order of the names.
func (r *role) demand() [][2]*ast.Term {
	if r.needs != nil || len(r.devices) == 0 {
		return r.needs
	}
	byName := slices.Clone(r.devices)
	slices.SortStableFunc(byName, func(a, b device) int { return strings.Compare(textOf(a.name), textOf(b.name)) })
	for len(byName) > 0 {
		name, n := byName[0].name, 1
		for n < len(byName) && textOf(byName[n].name) == textOf(name) {
			n++
		}
		r.needs = append(r.needs, ast.Item(name, r.demandOf(byName[:n])))
		byName = byName[n:]
	}
	return r.needs
}

// demandFor is how many devices with names that match patterns one pod of the
// role needs.
func (r *role) demandFor(patterns *ast.Array) *ast.Term {
	var demand amounts
	for _, need := range r.demand() {
		if matches(patterns, textOf(need[0])) {
			demand.add(need[1])
		}
	}
	return demand.total()
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

// demandOf is the larger of what runs at the same time: the containers with all
// sidecars, or an init container with the sidecars that started before it. It
// looks at none but the containers that name the device, in their order: an
// object may have tens of thousands of them, and as many names.
func (r *role) demandOf(named []device) *ast.Term {
	var running, sidecars amounts
	most, next := zero, 0
	starts := func(from, to int, n *ast.Term) {
		if r.initsBetween(from, to) {
			most = largest(most, n)
		}
	}
	for i := range named {
		d, c := &named[i], named[i].container
		switch c.kind {
		case "main":
			running.add(d.amount())
		case "init", "sidecar":
			starts(next, c.index, sidecars.total())
			next = c.index + 1
			if c.kind == "sidecar" {
				sidecars.add(d.amount())
			} else {
				most = largest(most, total([]*ast.Term{d.amount(), sidecars.total()}))
			}
		}
	}
	starts(next, len(r.plainInits)-1, sidecars.total())
	return largest(most, running.with(&sidecars))
}

// initsBetween reports whether an init container that is no sidecar has one of
// some indices.
func (r *role) initsBetween(from, to int) bool {
	return from < to && r.plainInits[to] > r.plainInits[from]
}

// amount is the limit, which the request of an extended resource must equal, or
// the request where there is no limit.
func (d *device) amount() *ast.Term {
	return or(d.amounts[0], or(d.amounts[1], zero))
}

// amounts are numbers to be summed up, exactly as Rego does.
type amounts struct {
	list []*ast.Term
	// whole is their sum unless one of them is not small.
	whole int
	other bool
}

func (a *amounts) add(n *ast.Term) {
	a.list = append(a.list, n)
	whole, ok := small(n)
	a.whole += whole
	a.other = a.other || !ok
}

func (a *amounts) total() *ast.Term {
	if a.other {
		return total(a.list)
	}
	return ast.InternedTerm(a.whole)
}

// with is the sum of these and more.
func (a *amounts) with(more *amounts) *ast.Term {
	if a.other || more.other {
		return total(slices.Concat(a.list, more.list))
	}
	return ast.InternedTerm(a.whole + more.whole)
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
