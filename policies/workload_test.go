package policies

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"sigs.k8s.io/yaml"
)

// TestWorkloadIsItsDefinition holds the native computation of the shared
// library to its Rego: on all objects of the library's cases, and on thousands
// of broken variants of them.
func TestWorkloadIsItsDefinition(t *testing.T) {
	objects := caseObjects(t)
	if len(objects) < 30 {
		t.Fatalf("found only %d objects", len(objects))
	}
	definition := newDefinition(t)
	for _, object := range objects {
		definition.compare(t, ast.NewTerm(object))
	}
	definition.compare(t, nil)
	random := rand.New(rand.NewPCG(1, 2))
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	for range rounds {
		broken := objects[random.IntN(len(objects))]
		for range 1 + random.IntN(3) {
			broken = breakAt(random, broken)
		}
		if !definition.compare(t, ast.NewTerm(broken)) {
			return
		}
	}
}

// definition evaluates the shared library as Rego.
type definition struct{ compiler *ast.Compiler }

func newDefinition(t *testing.T) *definition {
	t.Helper()
	compiler := ast.NewCompiler()
	compiler.Compile(parsedLibrary().modules)
	if compiler.Failed() {
		t.Fatal(compiler.Errors)
	}
	return &definition{compiler}
}

func (d *definition) compare(t *testing.T, object *ast.Term) bool {
	t.Helper()
	in := &input{object: object}
	document := in.forPolicy(reads{}, nil)
	w := newWorkload(object)
	for name := range workloadValues {
		ref, got := workloadPackage.Append(ast.StringTerm(name)), w.value(name)
		body := ast.NewBody(ast.Equality.Expr(ast.VarTerm("x"), ast.NewTerm(ref)))
		results, err := topdown.NewQuery(body).WithCompiler(d.compiler).
			WithStore(noData.store).WithTransaction(noData.txn).
			WithInput(document).WithTime(time.Unix(0, 0)).Run(t.Context())
		if err != nil {
			t.Errorf("%s: %v\nof %v", ref, err, object)
			return false
		}
		if len(results) != 1 {
			t.Errorf("%s is undefined for %v", ref, object)
			return false
		}
		if want := results[0]["x"]; want.Value.Compare(got.Value) != 0 {
			t.Errorf("%s of %v (-rego +native):\n%s", ref, object, cmp.Diff(want.String(), got.String()))
			return false
		}
	}
	return true
}

// caseObjects are the objects in the library's cases, and Kubernetes objects
// made of their pods.
func caseObjects(t *testing.T) []ast.Value {
	t.Helper()
	files, err := filepath.Glob("library/*/cases/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var objects []ast.Value
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq("\n"+string(text), "\n---\n") {
			raw, err := yaml.YAMLToJSON([]byte(document))
			if err != nil {
				t.Fatal(err)
			}
			value, err := ParseJSON(raw)
			if err != nil {
				t.Fatal(err)
			}
			object := value.(ast.Object).Get(ast.StringTerm("object"))
			objects = append(objects, object.Value)
			if pod := valueAt(object.Value, "spec.roles[0].template.spec"); pod != nil {
				objects = append(objects, podObjects(pod)...)
			}
		}
	}
	return objects
}

func podObjects(pod ast.Value) []ast.Value {
	member := func(name string, value ast.Value) ast.Value {
		return ast.NewObject(ast.Item(ast.StringTerm(name), ast.NewTerm(value)))
	}
	kind := func(kind string, spec ast.Value) ast.Value {
		return ast.NewObject(
			ast.Item(ast.StringTerm("apiVersion"), ast.StringTerm("v1")),
			ast.Item(ast.StringTerm("kind"), ast.StringTerm(kind)),
			ast.Item(ast.StringTerm("spec"), ast.NewTerm(spec)))
	}
	template := member("template", member("spec", pod))
	return []ast.Value{
		kind("Pod", pod),
		kind("Job", template),
		kind("StatefulSet", template),
		kind("DaemonSet", template),
		kind("CronJob", member("jobTemplate", member("spec", template))),
		kind("ConfigMap", template),
	}
}

// breakAt returns a value with something in it replaced or taken out.
func breakAt(random *rand.Rand, value ast.Value) ast.Value {
	junk := []ast.Value{
		ast.Null{}, ast.Boolean(true), ast.Number("3"), ast.Number("2.5"), ast.String("x"), ast.String("8"), ast.String("500m"),
		ast.String("Always"), ast.String("Worker"), ast.NewArray(), ast.NewObject(),
		ast.Null{}, ast.String("Equal"), ast.String("Exists"), ast.String("nvidia.com/gpu"),
		ast.NewArray(ast.InternedNullTerm), ast.NewObject(ast.Item(ast.StringTerm("nvidia.com/gpu"), ast.StringTerm("1k"))),
	}
	if random.IntN(8) == 0 {
		return junk[random.IntN(len(junk))]
	}
	switch container := value.(type) {
	case ast.Object:
		keys := container.Keys()
		if len(keys) == 0 {
			break
		}
		chosen := keys[random.IntN(len(keys))]
		broken := ast.NewObject()
		container.Foreach(func(key, member *ast.Term) {
			if key.Equal(chosen) {
				member = ast.NewTerm(breakAt(random, member.Value))
			}
			broken.Insert(key, member)
		})
		return broken
	case *ast.Array:
		if container.Len() == 0 {
			break
		}
		chosen := random.IntN(container.Len())
		var elems []*ast.Term
		for i := range container.Len() {
			elem := container.Elem(i)
			if i == chosen {
				elem = ast.NewTerm(breakAt(random, elem.Value))
			}
			elems = append(elems, elem)
		}
		return ast.NewArray(elems...)
	}
	return junk[random.IntN(len(junk))]
}

// TestWorkloadOfManyContainers holds what is computed natively, which nothing
// interrupts, to time that grows with the object and not with its square: an
// object of 3 MiB, as many as an API server takes, has tens of thousands of
// containers, roles and names.
func TestWorkloadOfManyContainers(t *testing.T) {
	const n = 30_000
	list := func(one string) string {
		var text strings.Builder
		for i := range n {
			text.WriteString(strings.ReplaceAll(one, "#", strconv.Itoa(i)) + ",")
		}
		return "[" + strings.TrimSuffix(text.String(), ",") + "]"
	}
	limits := strings.Trim(strings.ReplaceAll(list(`"a/#":1`), "[", ""), "]")
	own := list(`{"name":"#","resources":{"limits":{"a/#":1}}}`)
	sidecars := list(`{"name":"#","restartPolicy":"Always","resources":{"limits":{"a/b":1}}},{"resources":{"requests":{"a/b":"2"}}}`)
	pods := map[string]string{
		"a device for each container":   `"containers":` + own,
		"sidecars":                      `"initContainers":` + sidecars,
		"a container of many devices":   `"containers":[{"resources":{"limits":{` + limits + `},"requests":{` + limits + `}}}]`,
		"a container with many volumes": `"volumes":` + list(`{"name":"#"}`) + `,"containers":[{"volumeMounts":` + list(`{"name":"#","mountPath":"/dev/shm"}`) + `,"resources":{"limits":{"a/b":8}}}]`,
	}
	objects := map[string]string{"roles": `{"apiVersion":"penstock.dev/v1","kind":"TrainingJob","spec":{"roles":` +
		list(`{"name":"#","template":{"spec":{"containers":[{"resources":{"limits":{"a/#":1}}}]}}}`) + `}}`}
	for name, pod := range pods {
		objects[name] = `{"apiVersion":"v1","kind":"Pod","spec":{` + pod + `}}`
	}
	for name, text := range objects {
		t.Run(name, func(t *testing.T) {
			object, err := ParseJSON([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			w := newWorkload(ast.NewTerm(object))
			for name := range workloadValues {
				w.value(name)
			}
			everything, few := parseTerm(t, `["*"]`), parseTerm(t, `[{"resources": ["*"], "key": "a", "effect": "NoSchedule"}]`)
			for _, name := range []string{"most_per_pod", "total_of", "wishes", "names_like"} {
				w.call(name, []*ast.Term{everything})
			}
			w.call("untolerated", []*ast.Term{few})
			w.call("cramped", []*ast.Term{everything, parseTerm(t, `2`)})
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %s", took)
			}
			t.Log(time.Since(start))
		})
	}
}
