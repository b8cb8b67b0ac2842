package conversion

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/api/v1alpha1"
)

// roundTrips is how many objects each way are converted there and back.
var roundTrips = flag.Uint64("round-trips", 5_000, "How many random objects of each kind, and each way, are converted there and back.")

// A randomKind makes specs of one kind at random: mostly what people write, with
// some of everything that could be lost on the way.
type randomKind struct {
	name       string
	hub, alpha func(*rand.Rand) map[string]any
}

var randomKinds = []randomKind{
	{v1.RayClusterKind, randomHubCluster, randomAlphaCluster},
	{v1.TrainingJobKind, randomHubSpec, randomAlphaSpec},
}

func TestRoundTrip(t *testing.T) {
	versions := map[string][2]schema.GroupVersion{
		"v1 to v1alpha1 and back": {v1.GroupVersion, v1alpha1.GroupVersion},
		"v1alpha1 to v1 and back": {v1alpha1.GroupVersion, v1.GroupVersion},
	}
	for _, kind := range randomKinds {
		for name, tc := range versions {
			t.Run(kind.name+" "+name, func(t *testing.T) {
				t.Parallel()
				for seed := range *roundTrips {
					roundTrip(t, kind, seed, tc[0], tc[1])
				}
			})
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint8(seed), seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, kind uint8, up bool) {
		random := randomKinds[int(kind)%len(randomKinds)]
		if up {
			roundTrip(t, random, seed, v1alpha1.GroupVersion, v1.GroupVersion)
		} else {
			roundTrip(t, random, seed, v1.GroupVersion, v1alpha1.GroupVersion)
		}
	})
}

// roundTrip converts one random object there and back as the API server would
// have it done, and holds each answer against the careful path.
func roundTrip(t *testing.T, kind randomKind, seed uint64, from, to schema.GroupVersion) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	object := randomObject(r, kind, from)
	there := converted(t, r, object, to)
	again, err := Convert(there, to)
	if err != nil || string(again) != string(there) {
		t.Fatalf("seed %d: converting to the version it has changed the object: %v", seed, err)
	}
	back := converted(t, r, there, from)
	if !sameMeaning(t, object, back) {
		t.Fatalf("seed %d: %s to %s and back (-want +got):\n%s\nobject: %s\nconverted: %s", seed, from, to,
			cmp.Diff(mustTree(t, object), mustTree(t, back)), object, there)
	}
	for _, fast := range []struct {
		from, got []byte
		to        schema.GroupVersion
	}{{object, there, to}, {there, back, from}} {
		if careful := convertCarefully(t, fast.from, fast.to); !sameMeaning(t, careful, fast.got) {
			t.Fatalf("seed %d: the fast path to %s differs from the careful one (-careful +fast):\n%s\nobject: %s", seed, fast.to,
				cmp.Diff(mustTree(t, careful), mustTree(t, fast.got)), fast.from)
		}
	}
}

// converted has the handler convert an object, in a review whose members come in
// some order, with white space between them.
func converted(t *testing.T, r *rand.Rand, object []byte, to schema.GroupVersion) []byte {
	t.Helper()
	request := inSomeOrder(r, map[string][]byte{
		"uid":               []byte(`"u"`),
		"desiredAPIVersion": []byte(strconv.Quote(to.String())),
		"objects":           slices.Concat([]byte("[ "), inSomeOrder(r, members(t, object)), []byte("\t]")),
	})
	review := inSomeOrder(r, map[string][]byte{
		"kind": []byte(`"ConversionReview"`), "apiVersion": []byte(strconv.Quote(reviewVersion)), "request": request,
	})
	code, body := post(t, &Handler{}, string(review))
	var answer struct {
		Response struct {
			UID              string
			Result           struct{ Status, Message string }
			ConvertedObjects []json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	response := answer.Response
	if code != http.StatusOK || response.UID != "u" || response.Result.Status != metav1.StatusSuccess || len(response.ConvertedObjects) != 1 {
		t.Fatalf("failed to convert %s to %s: %d %s", object, to, code, body)
	}
	return response.ConvertedObjects[0]
}

func members(t *testing.T, object []byte) map[string][]byte {
	t.Helper()
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(object, &raw); err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for name, value := range raw {
		found[name] = value
	}
	return found
}

// inSomeOrder writes an object: half of the time in the order of its names, as
// the API server does.
func inSomeOrder(r *rand.Rand, members map[string][]byte) []byte {
	names := slices.Sorted(maps.Keys(members))
	if r.IntN(2) == 0 {
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	}
	space := []string{"", " ", "\n\t"}[r.IntN(3)]
	out := []byte("{" + space)
	for i, name := range names {
		if i > 0 {
			out = append(out, ","+space...)
		}
		out = append(out, strconv.Quote(name)+space+":"+space...)
		out = append(out, members[name]...)
	}
	return append(out, space+"}"...)
}

func sameMeaning(t *testing.T, a, b []byte) bool {
	t.Helper()
	return reflect.DeepEqual(mustTree(t, a), mustTree(t, b))
}

// convertCarefully converts by way of trees alone: the oracle of the fast path.
func convertCarefully(t *testing.T, raw []byte, to schema.GroupVersion) []byte {
	t.Helper()
	object, err := splitObject(raw)
	if err != nil {
		t.Fatal(err)
	}
	kept, metadata := takeAnnotation(object.metadata, v1.RestoreAnnotation)
	spec, lost, err := kinds[object.gvk().GroupKind()].spokes["v1alpha1"].convertExactly(object.rawSpec(), kept, to.Version == hubVersion)
	if err != nil {
		t.Fatal(err)
	}
	object.apiVersion, object.spec = to.String(), specText{written: spec}
	object.metadata = putAnnotation(metadata, v1.RestoreAnnotation, lost)
	return object.appendTo(nil)
}

func mustTree(t *testing.T, raw []byte) any {
	t.Helper()
	var value any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return value
}

// randomObject makes the JSON of an object in some version.
func randomObject(r *rand.Rand, kind randomKind, version schema.GroupVersion) []byte {
	object := map[string]any{
		"apiVersion": version.String(),
		"kind":       kind.name,
		"metadata": map[string]any{
			"name": "some", "uid": "1", "generation": json.Number("12345678901234567"),
			"annotations": map[string]any{"a": "<b> & null {} \u2028"},
		},
	}
	if r.IntN(20) > 0 {
		spec := kind.hub(r)
		if version.Version != hubVersion {
			spec = kind.alpha(r)
		}
		// No ill-typed v1 object is ever stored, and the annotation must not
		// bring one back; TestConvertCarriesIllTypedValues covers the rest.
		if version.Version != hubVersion && r.IntN(4) == 0 {
			disturb(r, spec)
		}
		object["spec"] = spec
	}
	if r.IntN(2) == 0 {
		object["status"] = map[string]any{"phase": "Running", "roles": []any{map[string]any{"name": "Worker", "active": 3}}}
	}
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return raw
}

// maybe sets a member three times out of five.
func maybe(r *rand.Rand, object map[string]any, name string, values ...any) {
	if r.IntN(5) < 3 {
		object[name] = values[r.IntN(len(values))]
	}
}

func randomTemplate(r *rand.Rand) any {
	template := map[string]any{}
	maybe(r, template, "metadata", map[string]any{"creationTimestamp": nil}, map[string]any{"labels": map[string]any{"a": ""}})
	maybe(r, template, "spec",
		map[string]any{"containers": []any{map[string]any{"name": "pytorch", "resources": map[string]any{"limits": map[string]any{"cpu": "1000m", "nvidia.com/gpu": json.Number("8")}}}}},
		map[string]any{"unknown": json.Number("9007199254740993.10"), "containers": "ill-typed"}, nil)
	return template
}

func randomHubSpec(r *rand.Rand) map[string]any {
	spec := map[string]any{}
	maybe(r, spec, "framework", "PyTorch", "PyTorch", "TensorFlow", "MPI", "PaddlePaddle", "XGBoost", "JAX")
	names := []string{"Master", "Worker", "PS", "Chief", "Launcher", "Evaluator", "worker", "a-b", "a/b"}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var roles []any
	for _, name := range names[:r.IntN(4)] {
		role := map[string]any{"name": name}
		maybe(r, role, "replicas", 0, 1, 7)
		maybe(r, role, "restartPolicy", "OnFailure", "ExitCode", "")
		maybe(r, role, "template", randomTemplate(r))
		if r.IntN(3) == 0 {
			role["topology"] = map[string]any{"required": "rack"}
		}
		roles = append(roles, role)
	}
	if roles != nil || r.IntN(5) == 0 {
		spec["roles"] = roles
	}
	if roles == nil && spec["roles"] != nil {
		spec["roles"] = []any{}
	}
	policy := randomRunPolicy(r)
	maybe(r, policy, "restart", "Gang", "Pod", "strange")
	maybe(r, spec, "runPolicy", policy)
	maybe(r, spec, "gang", randomGang(r, "queueName", "priorityClassName", "scheduler"), map[string]any{"topology": map[string]any{"preferred": "zone"}})
	elastic := map[string]any{}
	maybe(r, elastic, "replicas", 2, 3)
	maybe(r, elastic, "minReplicas", 1)
	maybe(r, elastic, "metrics", []any{map[string]any{"type": "Resource", "resource": map[string]any{"target": map[string]any{"averageValue": "1000m"}}}}, []any{})
	maybe(r, spec, "elastic", elastic)
	rendezvous := map[string]any{}
	maybe(r, rendezvous, "backend", "c10d", "strange")
	maybe(r, rendezvous, "mode", "Shared", "Standalone", "strange")
	maybe(r, rendezvous, "options", []any{map[string]any{"key": "a", "value": ""}, map[string]any{"key": "b"}}, []any{})
	pytorch := map[string]any{}
	maybe(r, pytorch, "processesPerNode", "auto", "4")
	maybe(r, pytorch, "maxRestarts", 3)
	maybe(r, pytorch, "rendezvous", rendezvous)
	maybe(r, spec, "pytorch", pytorch)
	tensorflow := map[string]any{}
	maybe(r, tensorflow, "successPolicy", "Worker0", "AllWorkers", "strange")
	maybe(r, tensorflow, "workers", "Static", "Dynamic", "strange")
	maybe(r, spec, "tensorflow", tensorflow)
	mpi := map[string]any{}
	maybe(r, mpi, "slotsPerWorker", 2)
	maybe(r, mpi, "implementation", "Intel", "strange")
	maybe(r, mpi, "launcher", "LauncherAsWorker", "LauncherOnly", "strange")
	maybe(r, mpi, "launcherCreation", "AtStartup")
	maybe(r, mpi, "transport", "SSH", "Exec")
	maybe(r, mpi, "kubectlImage", "images.example/kubectl:1")
	maybe(r, mpi, "mainContainer", "mpi", "")
	maybe(r, spec, "mpi", mpi)
	return spec
}

func randomRunPolicy(r *rand.Rand) map[string]any {
	policy := map[string]any{}
	maybe(r, policy, "suspend", true, false)
	maybe(r, policy, "activeDeadlineSeconds", json.Number("9223372036854775807"))
	maybe(r, policy, "backoffLimit", 3)
	maybe(r, policy, "ttlSecondsAfterFinished", 0)
	maybe(r, policy, "cleanPodPolicy", "All", "None", "")
	maybe(r, policy, "managedBy", "kueue.x-k8s.io/multikueue", "")
	return policy
}

func randomGang(r *rand.Rand, queue, priority string, more ...string) map[string]any {
	gang := map[string]any{}
	maybe(r, gang, "minAvailable", 2)
	maybe(r, gang, queue, "q", "")
	maybe(r, gang, priority, "high")
	maybe(r, gang, "minResources", map[string]any{"cpu": "1000m"}, map[string]any{})
	maybe(r, gang, "scheduleTimeoutSeconds", 60)
	for _, name := range more {
		maybe(r, gang, name, "volcano")
	}
	return gang
}

func randomAlphaSpec(r *rand.Rand) map[string]any {
	spec := map[string]any{}
	for range 1 + r.IntN(6)/5 {
		m := replicaMaps[r.IntN(len(replicaMaps))]
		specs := map[string]any{}
		for _, name := range []string{"Master", "Worker", "PS", "Chief", "Launcher", "worker"} {
			if r.IntN(3) > 0 {
				continue
			}
			role := map[string]any{}
			maybe(r, role, "replicas", 0, 1, 7)
			maybe(r, role, "restartPolicy", "OnFailure", "ExitCode", "")
			maybe(r, role, "template", randomTemplate(r))
			specs[name] = role
		}
		spec[m.field] = specs
	}
	policy := randomRunPolicy(r)
	maybe(r, policy, "schedulingPolicy", randomGang(r, "queue", "priorityClass"))
	maybe(r, spec, "runPolicy", policy)
	elastic := map[string]any{}
	maybe(r, elastic, "minReplicas", 1)
	maybe(r, elastic, "rdzvBackend", "c10d", "")
	maybe(r, elastic, "rdzvHost", "host", "")
	maybe(r, elastic, "rdzvConf", []any{map[string]any{"key": "a", "value": "b"}}, []any{map[string]any{"key": "a", "value": ""}}, []any{})
	maybe(r, elastic, "standalone", true, false)
	maybe(r, elastic, "nProcPerNode", 2)
	maybe(r, elastic, "maxRestarts", 2)
	maybe(r, elastic, "metrics", []any{map[string]any{"type": "Resource"}})
	maybe(r, spec, "elasticPolicy", elastic)
	maybe(r, spec, "nprocPerNode", "auto", "2", "")
	maybe(r, spec, "successPolicy", "", "AllWorkers", "strange")
	maybe(r, spec, "enableDynamicWorker", true, false)
	maybe(r, spec, "slotsPerWorker", 2)
	maybe(r, spec, "cleanPodPolicy", "All", "")
	maybe(r, spec, "mainContainer", "mpi")
	maybe(r, spec, "runLauncherAsWorker", true, false)
	return spec
}

// disturb puts values where they do not belong, as a typing error would.
func disturb(r *rand.Rand, object map[string]any) {
	odd := []any{nil, "three", -1, 1.5, true, []any{}, []any{"x"}, map[string]any{}, map[string]any{"x": "y"}, json.Number("300000000000000000000")}
	for name, value := range object {
		inner, isObject := value.(map[string]any)
		switch {
		case isObject && r.IntN(2) == 0:
			disturb(r, inner)
		case r.IntN(8) == 0:
			object[name] = odd[r.IntN(len(odd))]
		}
		if list, ok := value.([]any); ok && len(list) > 0 && r.IntN(3) == 0 {
			if inner, ok := list[0].(map[string]any); ok {
				disturb(r, inner)
			}
		}
	}
	if r.IntN(6) == 0 {
		object[fmt.Sprintf("unknown%d", r.IntN(3))] = odd[r.IntN(len(odd))]
	}
}
