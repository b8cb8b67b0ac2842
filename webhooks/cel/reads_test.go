package cel_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-dev/penstock/webhooks/cel"
)

func TestReads(t *testing.T) {
	for expression, want := range map[string][]string{
		"has(object.spec.hostNetwork)":             {"object.spec: spec", "object.spec.hostNetwork: spec.hostNetwork"},
		"oldObject.metadata.labels['a.b/c'] == ''": {"oldObject.metadata: metadata", "oldObject.metadata.labels: metadata.labels", "oldObject.metadata.labels.a.b/c: metadata.labels.a.b/c"},
		"'a' in object.metadata.labels":            {"object.metadata: metadata", "object.metadata.labels: metadata.labels", "object.metadata.labels.a: metadata.labels.a"},
		"object.spec.containers.exists(c, c.image == 'a')": {
			"object.spec: spec", "object.spec.containers: spec.containers", "c.image: spec.containers.*.image",
		},
		"object.spec.containers[0].?resources.?limits.orValue({})['a'] == 1": {
			"object.spec: spec", "object.spec.containers: spec.containers", "object.spec.containers[…].resources: spec.containers.*.resources",
			"object.spec.containers[…].resources.limits: spec.containers.*.resources.limits", "object.spec.containers[…].resources.limits.a: spec.containers.*.resources.limits.a",
		},
		"(object.a + object.b).filter(c, true).map(d, d.e).exists(f, f.g)": {
			"object.a: a", "object.b: b", "d.e: a.*.e, b.*.e", "f.g: a.*.e.g, b.*.e.g",
		},
		"[object, object.a].exists(pod, has(pod.spec))": {"object.a: a", "pod.spec: spec, a.spec"},
		"object.?a.optMap(v, v.b).orValue(1) == 1":      {"object.a: a", "v.b: a.b"},
		"(has(request.x) ? object.a : object.b).c":      {"object.a: a", "object.b: b", "object.a.c: a.c, b.c"},
		"object.spec.all(key, value, value.a == key.b)": {"object.spec: spec", "value.a: spec.*.a"},
		"request.userInfo.username == 'object.a'":       nil,
		"object.(": nil,
	} {
		var got []string
		for _, read := range cel.Reads(expression) {
			var paths []string
			for _, path := range read.Paths {
				paths = append(paths, strings.Join(path, "."))
			}
			if line := read.Text + ": " + strings.Join(paths, ", "); len(got) == 0 || got[len(got)-1] != line {
				got = append(got, line)
			}
		}
		if diff := cmp.Diff(want, dedupe(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", expression, diff)
		}
	}
}

// dedupe leaves out what was there before.
func dedupe(lines []string) []string {
	known := map[string]bool{}
	var once []string
	for _, line := range lines {
		if !known[line] {
			once = append(once, line)
		}
		known[line] = true
	}
	return once
}
