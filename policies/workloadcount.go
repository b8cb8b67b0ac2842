package policies

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// What the shared library counts over all roles.

// scaleOf is how many pods a role has, each replica being as many as it has
// hosts, and what decides that.
func scaleOf(spec *ast.Term, path string) (pods *ast.Term, decider string) {
	replicas, field := scaledReplicas(spec)
	if hosts := get(spec, "hosts"); isNumber(hosts) {
		replicas = times(replicas, hosts)
	}
	return replicas, path + field
}

// scaledReplicas are those of a role within its scaling, from its smallest
// number on.
func scaledReplicas(spec *ast.Term) (replicas *ast.Term, field string) {
	scaling := get(spec, "scaling")
	if !isObject(scaling) {
		return numberOr(get(spec, "replicas"), one), ".replicas"
	}
	replicas = largest(zero, numberOr(get(spec, "replicas"), zero))
	least, most := get(scaling, "minReplicas"), get(scaling, "maxReplicas")
	exceeds := isNumber(most) && replicas.Value.Compare(most.Value) > 0
	switch {
	case isNumber(least) && (replicas.Value.Compare(least.Value) < 0 || exceeds && most.Value.Compare(least.Value) < 0):
		return least, ".scaling.minReplicas"
	case exceeds:
		return most, ".scaling.maxReplicas"
	default:
		return replicas, ".replicas"
	}
}

func (w *workload) podsTotal() *ast.Term { return total(w.replicas()) }

func (w *workload) mostReplicas() *ast.Term {
	return largest(append(w.replicas(), zero)...)
}

func (w *workload) replicas() []*ast.Term {
	counts := make([]*ast.Term, 0, len(w.roles)+1)
	for i := range w.roles {
		counts = append(counts, w.roles[i].replicas)
	}
	return counts
}

func (w *workload) claimsTotal() *ast.Term {
	claims := make([]*ast.Term, 0, len(w.roles))
	for i := range w.roles {
		claims = append(claims, times(claimsOf(&w.roles[i]), w.roles[i].replicas))
	}
	return total(claims)
}

// mostPerPod is how many devices with names that match patterns one pod needs
// at most.
func (w *workload) mostPerPod(patterns *ast.Term) *ast.Term {
	demands := w.demands(patterns)
	if demands == nil {
		return nil
	}
	return largest(append(demands, zero)...)
}

// totalOf is how many such devices all pods need together.
func (w *workload) totalOf(patterns *ast.Term) *ast.Term {
	demands := w.demands(patterns)
	if demands == nil {
		return nil
	}
	for i := range demands {
		demands[i] = times(demands[i], w.roles[i].replicas)
	}
	return total(demands)
}

// demands are what one pod of each role needs; nil where Rego has to say.
func (w *workload) demands(patterns *ast.Term) []*ast.Term {
	list, ok := patternsOf(patterns)
	if !ok {
		return nil
	}
	demands := make([]*ast.Term, 0, len(w.roles)+1)
	for i := range w.roles {
		demands = append(demands, w.roles[i].demandFor(list))
	}
	return demands
}

// unsoundDevices are the devices that are not asked for as a whole number that
// limit and request agree on.
func (w *workload) unsoundDevices() *ast.Term {
	var unsound []*ast.Term
	for i := range w.devices {
		if d := &w.devices[i]; !d.sound() {
			unsound = append(unsound, d.term())
		}
	}
	return ast.ArrayTerm(unsound...)
}

func (d *device) sound() bool {
	limit, request := d.amounts[0], d.amounts[1]
	if limit == nil || !isWhole(limit) {
		return false
	}
	if d.written[1] == nil {
		return true
	}
	return request != nil && request.Value.Compare(limit.Value) == 0
}

func isWhole(n *ast.Term) bool {
	return n.Value.Compare(zero.Value) >= 0 && isInteger(n)
}

func isInteger(n *ast.Term) bool {
	if _, ok := small(n); ok {
		return true
	}
	return n.Value.Compare(call("floor", n).Value) == 0
}

// cramped selects containers that ask for as many devices as least, or more,
// and have no more shared memory than every container gets.
func (w *workload) cramped(patterns, least *ast.Term) *ast.Term {
	list, ok := patternsOf(patterns)
	if !ok || !isNumber(least) {
		return nil
	}
	var selected []*ast.Term
	for i := range w.containers {
		c := &w.containers[i]
		if c.kind != "main" || isTrue(get(c.role.pod, "hostIPC")) ||
			w.containerDemand(c, list).Value.Compare(least.Value) < 0 || isRoomy(c) {
			continue
		}
		selected = append(selected, ast.ObjectTerm(
			ast.Item(keyPath, ast.StringTerm(c.path)),
			ast.Item(keySpec, c.spec),
			ast.Item(keyPod, c.role.pod),
			ast.Item(keyPodPath, ast.StringTerm(c.role.podPath))))
	}
	return ast.ArrayTerm(selected...)
}

// containerDemand is how many devices with names that match patterns a
// container asks for; devices are told apart from other resources by the name.
func (w *workload) containerDemand(c *container, patterns *ast.Array) *ast.Term {
	lists := resourcesOf(c.spec)
	var demand amounts
	for _, name := range namesOf(lists) {
		if matches(patterns, textOf(name)) {
			d := deviceOf(c, name, lists)
			demand.add(d.amount())
		}
	}
	return demand.total()
}

func isTrue(value *ast.Term) bool {
	return value != nil && value.Value.Compare(ast.Boolean(true)) == 0
}

// isRoomy reports whether a volume that is not on disk is mounted where processes
// share memory.
func isRoomy(c *container) bool {
	var mounted []*ast.Term
	for _, mount := range listOf(get(c.spec, "volumeMounts")) {
		path, name := textOf(get(mount, "mountPath")), get(mount, "name")
		if (path == "/dev/shm" || path == "/dev/shm/") && name != nil {
			mounted = append(mounted, name)
		}
	}
	if len(mounted) == 0 {
		return false
	}
	names := ast.NewSet(mounted...)
	return slices.ContainsFunc(listOf(get(c.role.pod, "volumes")), func(volume *ast.Term) bool {
		name := get(volume, "name")
		return name != nil && names.Contains(name) && !isOnDisk(volume)
	})
}

func isOnDisk(volume *ast.Term) bool {
	directory := get(volume, "emptyDir")
	return isObject(directory) && textOf(get(directory, "medium")) != "Memory"
}
