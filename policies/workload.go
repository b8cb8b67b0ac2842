package policies

import (
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// workload computes the values of library/lib/workload.rego for an object.
// That text is the definition; this computes the same some fifty times faster,
// and a test holds the two together.
type workload struct {
	object *ast.Term

	found         bool
	roles         []role
	containers    []container
	devices       []device
	resourceNames []*ast.Term

	// terms are the values that rules have asked for.
	terms map[string]*ast.Term
}

// workloadValues are the rules of the shared library that are values and not
// functions.
var workloadValues = map[string]func(*workload) *ast.Term{
	"roles":          func(w *workload) *ast.Term { return listTerm(w.roles, role.term) },
	"containers":     func(w *workload) *ast.Term { return listTerm(w.containers, container.term) },
	"devices":        func(w *workload) *ast.Term { return listTerm(w.devices, device.term) },
	"pods":           func(w *workload) *ast.Term { return listTerm(w.roles, w.podTerm) },
	"resource_names": func(w *workload) *ast.Term { return ast.SetTerm(w.resourceNames...) },
}

// newWorkload looks at an object, which may be nil.
func newWorkload(object *ast.Term) *workload {
	return &workload{object: or(object, ast.InternedNullTerm), terms: map[string]*ast.Term{}}
}

// value returns the value of a rule of data.penstock.workload, nil when there
// is no such value.
func (w *workload) value(name string) *ast.Term {
	if term, ok := w.terms[name]; ok {
		return term
	}
	compute, ok := workloadValues[name]
	if !ok {
		return nil
	}
	if !w.found {
		w.found = true
		w.findRoles()
		w.findContainers()
		w.findDevices()
	}
	term := compute(w)
	w.terms[name] = term
	return term
}

// role is a group of equal pods.
type role struct {
	name         *ast.Term
	path         string
	spec         *ast.Term
	replicas     *ast.Term
	replicasPath string
	podPath      string
	pod          *ast.Term
}

func (r role) term() *ast.Term {
	return ast.ObjectTerm(
		ast.Item(keyName, r.name),
		ast.Item(keyPath, ast.StringTerm(r.path)),
		ast.Item(keySpec, r.spec),
		ast.Item(keyReplicas, r.replicas),
		ast.Item(keyReplicasPath, ast.StringTerm(r.replicasPath)),
		ast.Item(keyPodPath, ast.StringTerm(r.podPath)),
		ast.Item(keyPod, r.pod),
	)
}

// place says where a kind of Kubernetes keeps its pod spec.
type place struct{ owner, pod, replicas string }

var controlled = place{"spec", "spec.template.spec", "spec.replicas"}

var podPlaces = map[string]place{
	"Pod":         {"", "spec", "spec.replicas"},
	"PodTemplate": {"template", "template.spec", "replicas"},
	"Job":         {"spec", "spec.template.spec", "spec.parallelism"},
	"CronJob": {
		"spec.jobTemplate.spec",
		"spec.jobTemplate.spec.template.spec",
		"spec.jobTemplate.spec.parallelism",
	},
	"Deployment":            controlled,
	"StatefulSet":           controlled,
	"ReplicaSet":            controlled,
	"ReplicationController": controlled,
	"DaemonSet":             controlled,
}

func (w *workload) findRoles() {
	if strings.HasPrefix(textOf(get(w.object, "apiVersion")), "penstock.dev/") {
		w.findOwnRoles()
		return
	}
	kind := get(w.object, "kind")
	at, known := podPlaces[textOf(kind)]
	if !known {
		return
	}
	w.roles = append(w.roles, role{
		name:         kind,
		path:         at.owner,
		spec:         or(get(w.object, at.owner), ast.InternedEmptyObject),
		replicas:     numberOr(get(w.object, at.replicas), one),
		replicasPath: at.replicas,
		podPath:      at.pod,
		pod:          or(get(w.object, at.pod), ast.InternedEmptyObject),
	})
}

func (w *workload) findOwnRoles() {
	elastic := get(w.object, "spec.elastic.replicas")
	for i, spec := range listOf(get(w.object, "spec.roles")) {
		if !isObject(spec) {
			continue
		}
		path := "spec.roles[" + strconv.Itoa(i) + "]"
		found := role{
			name:         or(get(spec, "name"), ast.InternedEmptyString),
			path:         path,
			spec:         spec,
			replicas:     numberOr(get(spec, "replicas"), one),
			replicasPath: path + ".replicas",
			podPath:      path + ".template.spec",
			pod:          or(get(spec, "template.spec"), ast.InternedEmptyObject),
		}
		// spec.elastic.replicas overrides the count of the role Worker.
		if isNumber(elastic) && textOf(found.name) == "Worker" {
			found.replicas, found.replicasPath = elastic, "spec.elastic.replicas"
		}
		w.roles = append(w.roles, found)
	}
}

// container is a container of a role's pods; kind is main, init or sidecar.
type container struct {
	role *ast.Term
	kind string
	path string
	spec *ast.Term
}

func (c container) term() *ast.Term {
	return ast.ObjectTerm(
		ast.Item(keyRole, c.role),
		ast.Item(keyType, stringTerm(c.kind)),
		ast.Item(keyPath, ast.StringTerm(c.path)),
		ast.Item(keySpec, c.spec),
	)
}

func (w *workload) findContainers() {
	for _, r := range w.roles {
		for _, list := range []string{"containers", "initContainers"} {
			for i, spec := range listOf(get(r.pod, list)) {
				if !isObject(spec) {
					continue
				}
				kind := "main"
				switch {
				case list == "initContainers" && isSidecar(spec):
					kind = "sidecar"
				case list == "initContainers":
					kind = "init"
				}
				w.containers = append(w.containers, container{
					role: r.name,
					kind: kind,
					path: r.podPath + "." + list + "[" + strconv.Itoa(i) + "]",
					spec: spec,
				})
			}
		}
	}
}

func isSidecar(container *ast.Term) bool {
	return textOf(get(container, "restartPolicy")) == "Always"
}

// Keys of the objects that rules see.
var (
	keyName         = ast.StringTerm("name")
	keyPath         = ast.StringTerm("path")
	keySpec         = ast.StringTerm("spec")
	keyReplicas     = ast.StringTerm("replicas")
	keyReplicasPath = ast.StringTerm("replicas_path")
	keyPodPath      = ast.StringTerm("pod_path")
	keyPod          = ast.StringTerm("pod")
	keyRole         = ast.StringTerm("role")
	keyType         = ast.StringTerm("type")
	keyWritten      = ast.StringTerm("written")
	keyAmounts      = ast.StringTerm("amounts")
	keyDemand       = ast.StringTerm("demand")
	keyLimits       = ast.StringTerm("limits")
	keyRequests     = ast.StringTerm("requests")

	one  = ast.InternedTerm(1)
	zero = ast.InternedTerm(0)
)

// get returns what lies at a dotted path of object members, nil when nothing
// does; the empty path is the value itself.
func get(value *ast.Term, path string) *ast.Term {
	for path != "" && value != nil {
		var name string
		name, path, _ = strings.Cut(path, ".")
		object, ok := value.Value.(ast.Object)
		if !ok {
			return nil
		}
		value = object.Get(stringTerm(name))
	}
	return value
}

func or(value, fallback *ast.Term) *ast.Term {
	if value == nil {
		return fallback
	}
	return value
}

func numberOr(value, fallback *ast.Term) *ast.Term {
	if isNumber(value) {
		return value
	}
	return fallback
}

func isNumber(value *ast.Term) bool {
	return value != nil && ast.TermValueIs[ast.Number](value)
}

func isObject(value *ast.Term) bool {
	if value == nil {
		return false
	}
	_, ok := value.Value.(ast.Object)
	return ok
}

func textOf(value *ast.Term) string {
	if value == nil {
		return ""
	}
	text, _ := value.Value.(ast.String)
	return string(text)
}

// listOf returns the elements of a list, none of anything else.
func listOf(value *ast.Term) []*ast.Term {
	if value == nil {
		return nil
	}
	array, ok := value.Value.(*ast.Array)
	if !ok {
		return nil
	}
	elems := make([]*ast.Term, 0, array.Len())
	array.Foreach(func(elem *ast.Term) { elems = append(elems, elem) })
	return elems
}

func listTerm[T any](values []T, term func(T) *ast.Term) *ast.Term {
	terms := make([]*ast.Term, 0, len(values))
	for _, value := range values {
		terms = append(terms, term(value))
	}
	return ast.ArrayTerm(terms...)
}
