package webhooks

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/webhooks/defaulting"
)

// content reads YAML as the gate reads objects.
func content(t testing.TB, text string) any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(`{"value": ` + text + `}`))
	if err != nil {
		t.Fatal(err)
	}
	read, err := decodeContent(raw)
	if err != nil {
		t.Fatal(err)
	}
	return read["value"]
}

func TestMerge(t *testing.T) {
	tests := map[string]struct {
		original, before, after string
		want                    string
	}{
		"nothing changed": {
			original: `{a: 1000m, typo: x}`, before: `{a: "1"}`, after: `{a: "1"}`,
			want: `{a: 1000m, typo: x}`,
		},
		"a field is added beside what the type cannot hold": {
			original: `{a: 1000m, typo: x}`, before: `{a: "1"}`, after: `{a: "1", b: 2}`,
			want: `{a: 1000m, typo: x, b: 2}`,
		},
		"a field that changed is written anew": {
			original: `{a: 1000m, typo: x}`, before: `{a: "1"}`, after: `{a: "2"}`,
			want: `{a: "2", typo: x}`,
		},
		"a field that was taken out goes": {
			original: `{a: 1, typo: x}`, before: `{a: 1}`, after: `{}`,
			want: `{typo: x}`,
		},
		"an item is appended to a list": {
			original: `[{a: 1000m, typo: x}]`, before: `[{a: "1"}]`, after: `[{a: "1"}, {b: 2}]`,
			want: `[{a: 1000m, typo: x}, {b: 2}]`,
		},
		"a list is written where there was none": {
			original: `{typo: x}`, before: `{}`, after: `{list: [{a: 1}]}`,
			want: `{typo: x, list: [{a: 1}]}`,
		},
		"a list is written where there was null": {
			original: `{list: null}`, before: `{}`, after: `{list: [{a: 1}]}`,
			want: `{list: [{a: 1}]}`,
		},
		"an item changes in the middle of a list": {
			original: `[{typo: x}, {typo: y}, {typo: z}]`, before: `[{}, {}, {}]`, after: `[{}, {a: 1}, {}]`,
			want: `[{typo: x}, {typo: y, a: 1}, {typo: z}]`,
		},
		"a role that repeats another goes, and what stays keeps its words": {
			original: `[{name: Master, cpu: 1000m}, {name: Worker, cpu: 2000m}, {name: master, cpu: 1000m}]`,
			before:   `[{name: Master, cpu: "1"}, {name: Worker, cpu: "2"}, {name: master, cpu: "1"}]`,
			after:    `[{name: Master, cpu: "1", replicas: 1}, {name: Worker, cpu: "2"}]`,
			want:     `[{name: Master, cpu: 1000m, replicas: 1}, {name: Worker, cpu: 2000m}]`,
		},
		"a role that was named in another case keeps its words when one goes": {
			original: `[{name: worker, cpu: 2000m}, {name: WORKER, cpu: 2000m}, {name: Master, typo: x}]`,
			before:   `[{name: worker, cpu: "2"}, {name: WORKER, cpu: "2"}, {name: Master}]`,
			after:    `[{name: Worker, cpu: "2"}, {name: Master}]`,
			want:     `[{name: Worker, cpu: 2000m}, {name: Master, typo: x}]`,
		},
		"items without names that were taken out leave what the type wrote": {
			original: `[1, 2, 3]`, before: `[1, 2, 3]`, after: `[3]`, want: `[3]`,
		},
		"a parent that the author left out holds only what was added": {
			original: `{name: a}`, before: `{name: a, resources: {}}`, after: `{name: a, resources: {limits: {gpu: "8"}}}`,
			want: `{name: a, resources: {limits: {gpu: "8"}}}`,
		},
		"a parent that is empty in the type's writing is not added": {
			original: `{name: a}`, before: `{name: a, resources: {}}`, after: `{name: a, resources: {}, x: 1}`,
			want: `{name: a, x: 1}`,
		},
		"a value takes the place of one of another type": {
			original: `{a: "1"}`, before: `{a: "1"}`, after: `{a: {b: 1}}`,
			want: `{a: {b: 1}}`,
		},
		"a whole object is written where there was none": {
			original: `null`, before: `{}`, after: `{a: 1}`, want: `{a: 1}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			original := content(t, tc.original)
			kept := runtime.DeepCopyJSONValue(original)
			got := merge(original, content(t, tc.before), content(t, tc.after))
			if diff := cmp.Diff(content(t, tc.want), got); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(kept, original); diff != "" {
				t.Errorf("the original was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// Whatever a job says beside what its Go type can hold is there after
// defaulting, and nothing that was added gets lost.
func TestMergeKeepsWhatTheTypeCannotHold(t *testing.T) {
	jobs, err := newTrainingJobs()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		written := randomJob(random)
		marks := 0
		mark(random, written["spec"], &marks)
		before := runtime.DeepCopyJSON(written)
		defaulted, err := jobs.defaulted(written, true, nil)
		if err != nil || defaulted == nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(before, written); diff != "" {
			t.Fatalf("seed %d: defaulting changed its argument:\n%s", seed, diff)
		}
		if missing := lost("spec", written["spec"], defaulted["spec"]); missing != "" {
			t.Fatalf("seed %d: %s is not what it was", seed, missing)
		}
		raw, err := json.Marshal(defaulted)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(raw), `"mark`); got != marks {
			t.Fatalf("seed %d: %d of %d unknown fields are left: %s", seed, got, marks, raw)
		}
		want, got := decodeAs[v1.TrainingJob](mustJSON(t, written)), decodeAs[v1.TrainingJob](raw)
		defaulting.DefaultTrainingJob(want)
		if diff := cmp.Diff(mustJSON(t, want), mustJSON(t, got)); diff != "" {
			t.Fatalf("seed %d: a default is missing (-want +got):\n%s", seed, diff)
		}
	}
}

func mustJSON(t testing.TB, value any) []byte {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// mark puts unknown fields into objects here and there.
func mark(random *rand.Rand, value any, marks *int) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			// These are maps, where every key is known.
			if name != "limits" && name != "requests" && name != "labels" {
				mark(random, member, marks)
			}
		}
		if random.IntN(3) == 0 {
			value[fmt.Sprintf("mark%d", *marks)] = "x"
			*marks++
		}
	case []any:
		for _, item := range value {
			mark(random, item, marks)
		}
	}
}

// lost names the first thing in before that after does not have. The names of
// roles may change in case.
func lost(path string, before, after any) string {
	switch before := before.(type) {
	case map[string]any:
		object, _ := after.(map[string]any)
		for name, member := range before {
			if missing := lost(path+"."+name, member, object[name]); missing != "" {
				return missing
			}
		}
		return ""
	case []any:
		list, _ := after.([]any)
		for i, item := range before {
			if i >= len(list) {
				return fmt.Sprintf("%s[%d]", path, i)
			}
			if missing := lost(fmt.Sprintf("%s[%d]", path, i), item, list[i]); missing != "" {
				return missing
			}
		}
		return ""
	default:
		if fmt.Sprint(before) != fmt.Sprint(after) && !(strings.HasSuffix(path, "].name") && strings.EqualFold(fmt.Sprint(before), fmt.Sprint(after))) {
			return path
		}
		return ""
	}
}

// randomJob makes jobs as their authors write them, in words that Go would not
// always choose.
func randomJob(random *rand.Rand) map[string]any {
	oneOf := func(values ...any) any { return values[random.IntN(len(values))] }
	maybe := func(object map[string]any, name string, value any) {
		if random.IntN(2) == 0 {
			object[name] = value
		}
	}
	frameworks := []v1.Framework{v1.FrameworkPyTorch, v1.FrameworkTensorFlow, v1.FrameworkMPI, v1.FrameworkJAX, v1.FrameworkXGBoost, v1.FrameworkPaddlePaddle}
	framework := frameworks[random.IntN(len(frameworks))]
	var roles []any
	for _, name := range framework.Roles() {
		if framework == v1.FrameworkTensorFlow && framework.Leads(name) && name != v1.RoleChief {
			continue
		}
		container := map[string]any{"name": framework.MainContainer(), "image": "registry.example/train:1"}
		maybe(container, "resources", map[string]any{
			"limits":   map[string]any{"cpu": oneOf("1000m", "1", int64(1)), "nvidia.com/gpu": oneOf("8", int64(8)), "memory": oneOf("1024Mi", "1Gi")},
			"requests": map[string]any{"cpu": oneOf("0.5", "500m")},
		})
		maybe(container, "ports", []any{map[string]any{"containerPort": oneOf(int64(80), int64(23456)), "name": "own"}})
		maybe(container, "env", []any{map[string]any{"name": "A", "value": ""}})
		role := map[string]any{
			"name": oneOf(string(name), strings.ToLower(string(name))),
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
				"spec":     map[string]any{"containers": []any{container}},
			},
		}
		if !framework.Leads(name) {
			maybe(role, "replicas", int64(1+random.IntN(4)))
		}
		maybe(role, "restartPolicy", oneOf("OnFailure", "Never"))
		roles = append(roles, role)
	}
	spec := map[string]any{"framework": string(framework), "roles": roles}
	maybe(spec, "runPolicy", map[string]any{"backoffLimit": int64(3), "suspend": oneOf(true, false)})
	maybe(spec, "gang", map[string]any{})
	if framework == v1.FrameworkPyTorch {
		maybe(spec, "elastic", map[string]any{"minReplicas": int64(1), "maxReplicas": int64(9)})
	}
	return map[string]any{
		"apiVersion": v1.GroupVersion.String(), "kind": v1.TrainingJobKind,
		"metadata": map[string]any{"name": "a", "namespace": "team-a"}, "spec": spec,
	}
}

func TestOwnersToKeep(t *testing.T) {
	const owner = `{manager: a, operation: Update, time: "1", fieldsV1: {"f:spec": {}}}`
	object := func(owners, rest string) string {
		return `{metadata: {managedFields: [` + owners + `], name: a}, spec: {` + rest + `}}`
	}
	later := strings.Replace(owner, `"1"`, `"2"`, 1)
	other := strings.Replace(owner, "manager: a", "manager: b", 1)
	tests := map[string]struct {
		old, object string
		want        bool
	}{
		"only a time differs":               {object(owner, ""), object(later, ""), true},
		"only the order of entries differs": {object(owner+", "+other, ""), object(other+", "+later, ""), true},
		"nothing differs":                   {object(owner, ""), object(owner, ""), false},
		"the spec differs":                  {object(owner, ""), object(later, "a: 1"), false},
		"a manager differs":                 {object(owner, ""), object(other, ""), false},
		"a manager is gone":                 {object(owner+", "+other, ""), object(later, ""), false},
		"there were none":                   {object("", ""), object(owner, ""), false},
		"there is no metadata":              {`{spec: {}}`, object(owner, ""), false},
		"the fields that are owned differ":  {object(owner, ""), object(strings.Replace(later, "f:spec", "f:status", 1), ""), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			old, object := content(t, tc.old).(map[string]any), content(t, tc.object).(map[string]any)
			got := ownersToKeep(old, object)
			if (got != nil) != tc.want {
				t.Errorf("got %v, want to keep: %v", got, tc.want)
			}
		})
	}
}
