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
	runs          []run

	// terms are the values that rules have asked for.
	terms map[string]*ast.Term
}

// workloadValues are the rules of the shared library that are values and not
// functions.
var workloadValues = map[string]func(*workload) *ast.Term{
	"roles":           func(w *workload) *ast.Term { return listTerm(w.roles, (*role).term) },
	"containers":      func(w *workload) *ast.Term { return listTerm(w.containers, (*container).term) },
	"devices":         func(w *workload) *ast.Term { return listTerm(w.devices, (*device).term) },
	"pods":            func(w *workload) *ast.Term { return listTerm(w.roles, w.podTerm) },
	"runs":            func(w *workload) *ast.Term { return listTerm(w.runs, (*run).term) },
	"resource_names":  func(w *workload) *ast.Term { return ast.SetTerm(w.resourceNames...) },
	"unsound_devices": (*workload).unsoundDevices,
	"pods_total":      (*workload).podsTotal,
	"most_replicas":   (*workload).mostReplicas,
	"claims_total":    (*workload).claimsTotal,
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
	w.find()
	term := compute(w)
	w.terms[name] = term
	return term
}

func (w *workload) find() {
	if w.found {
		return
	}
	w.found = true
	w.findRoles()
	w.findRuns()
	w.findContainers()
	w.findDevices()
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

	// plainInits counts the init containers before each that are no sidecars, and
	// at its end all of them.
	plainInits []int
	// devices are those of its containers, in their order.
	devices []device
	// needs are its demand, once that was asked for.
	needs [][2]*ast.Term
	// made is what rules see of it, once one has asked.
	made *ast.Term
}

func (r *role) term() *ast.Term {
	if r.made == nil {
		r.made = r.makeTerm()
	}
	return r.made
}

func (r *role) makeTerm() *ast.Term {
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
type place struct {
	owner, pod, replicas string
	// completions is where jobs say how many pods are to complete.
	completions string
}

var controlled = place{owner: "spec", pod: "spec.template.spec", replicas: "spec.replicas"}

var podPlaces = map[string]place{
	"Pod":         {owner: "", pod: "spec", replicas: "spec"},
	"PodTemplate": {owner: "template", pod: "template.spec", replicas: "template"},
	"Job":         {owner: "spec", pod: "spec.template.spec", replicas: "spec.parallelism", completions: "spec.completions"},
	"CronJob": {
		owner:       "spec.jobTemplate.spec",
		pod:         "spec.jobTemplate.spec.template.spec",
		replicas:    "spec.jobTemplate.spec.parallelism",
		completions: "spec.jobTemplate.spec.completions",
	},
	"Deployment":            controlled,
	"StatefulSet":           controlled,
	"ReplicaSet":            controlled,
	"ReplicationController": controlled,
	"DaemonSet":             {owner: "spec", pod: "spec.template.spec", replicas: "spec.template"},
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
		replicas:     w.placedReplicas(at),
		replicasPath: at.replicas,
		podPath:      at.pod,
		pod:          or(get(w.object, at.pod), ast.InternedEmptyObject),
	})
}

// placedReplicas is one where nothing else is said. Of a job no more pods run
// than are to complete.
func (w *workload) placedReplicas(at place) *ast.Term {
	replicas := numberOr(get(w.object, at.replicas), one)
	if at.completions == "" {
		return replicas
	}
	if n := get(w.object, at.completions); isNumber(n) {
		return call("min", ast.ArrayTerm(replicas, n))
	}
	return replicas
}

func (w *workload) findOwnRoles() {
	elastic := get(w.object, "spec.elastic.replicas")
	for i, spec := range listOf(get(w.object, "spec.roles")) {
		if !isObject(spec) {
			continue
		}
		path := "spec.roles[" + strconv.Itoa(i) + "]"
		found := role{
			name:    or(get(spec, "name"), ast.InternedEmptyString),
			path:    path,
			spec:    spec,
			podPath: path + ".template.spec",
			pod:     or(get(spec, "template.spec"), ast.InternedEmptyObject),
		}
		found.replicas, found.replicasPath = scaleOf(spec, path)
		// spec.elastic.replicas overrides the count of the role Worker.
		if isNumber(elastic) && textOf(found.name) == "Worker" {
			found.replicas, found.replicasPath = elastic, "spec.elastic.replicas"
		}
		w.roles = append(w.roles, found)
	}
}

// services are the kinds of Penstock that run until they are deleted.
var services = map[string]bool{"RayCluster": true}

// run says how often and how long something runs to its end.
type run struct {
	path   string
	policy *ast.Term
}

func (r *run) term() *ast.Term {
	return ast.ObjectTerm(ast.Item(keyPath, ast.StringTerm(r.path)), ast.Item(keyPolicy, r.policy))
}

func (w *workload) findRuns() {
	if strings.HasPrefix(textOf(get(w.object, "apiVersion")), "penstock.dev/") {
		if !services[textOf(get(w.object, "kind"))] {
			w.addRun("spec.runPolicy")
		}
	} else if at := podPlaces[textOf(get(w.object, "kind"))]; at.completions != "" {
		w.addRun(at.owner)
	}
}

func (w *workload) addRun(path string) {
	policy := get(w.object, path)
	if !isObject(policy) {
		policy = ast.InternedEmptyObject
	}
	w.runs = append(w.runs, run{path: path, policy: policy})
}

// container is a container of a role's pods; kind is main, init, sidecar or
// ephemeral, index its place in its list.
type container struct {
	role  *role
	kind  string
	index int
	path  string
	spec  *ast.Term

	made *ast.Term
}

func (c *container) term() *ast.Term {
	if c.made == nil {
		c.made = c.makeTerm()
	}
	return c.made
}

func (c *container) makeTerm() *ast.Term {
	return ast.ObjectTerm(
		ast.Item(keyRole, c.role.name),
		ast.Item(keyType, stringTerm(c.kind)),
		ast.Item(keyPath, ast.StringTerm(c.path)),
		ast.Item(keySpec, c.spec),
	)
}

func (w *workload) findContainers() {
	for i := range w.roles {
		r := &w.roles[i]
		inits := listOf(get(r.pod, "initContainers"))
		w.addContainers(r, "containers", listOf(get(r.pod, "containers")))
		w.addContainers(r, "initContainers", inits)
		w.addContainers(r, "ephemeralContainers", listOf(get(r.pod, "ephemeralContainers")))
		r.plainInits = make([]int, 1, len(inits)+1)
		for i, spec := range inits {
			plain := r.plainInits[i]
			if !isSidecar(spec) {
				plain++
			}
			r.plainInits = append(r.plainInits, plain)
		}
	}
}

func (w *workload) addContainers(r *role, list string, specs []*ast.Term) {
	for i, spec := range specs {
		if !isObject(spec) {
			continue
		}
		kind := "main"
		switch {
		case list == "initContainers" && isSidecar(spec):
			kind = "sidecar"
		case list == "initContainers":
			kind = "init"
		case list == "ephemeralContainers":
			kind = "ephemeral"
		}
		path := r.podPath + "." + list + "[" + strconv.Itoa(i) + "]"
		w.containers = append(w.containers, container{role: r, kind: kind, index: i, path: path, spec: spec})
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
	keyNeeds        = ast.StringTerm("needs")
	keySelector     = ast.StringTerm("selector")
	keyDemand       = ast.StringTerm("demand")
	keyLimits       = ast.StringTerm("limits")
	keyRequests     = ast.StringTerm("requests")
	keyClaims       = ast.StringTerm("claims")
	keyPolicy       = ast.StringTerm("policy")
	keyRow          = ast.StringTerm("row")
	keyPin          = ast.StringTerm("pin")
	keyKey          = ast.StringTerm("key")
	keyValues       = ast.StringTerm("values")
	keyField        = ast.StringTerm("field")
	keyTaint        = ast.StringTerm("taint")

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

func listTerm[T any](values []T, term func(*T) *ast.Term) *ast.Term {
	terms := make([]*ast.Term, 0, len(values))
	for i := range values {
		terms = append(terms, term(&values[i]))
	}
	return ast.ArrayTerm(terms...)
}
