package reconcilers

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-dev/penstock/test/fixtures"
)

func TestDifference(t *testing.T) {
	tests := map[string]struct {
		there, wanted string
		covers        bool
		surplus       string
	}{
		"the same": {
			there:  `{"metadata": {"uid": "u"}, "spec": {"selector": {"a": "b"}}}`,
			wanted: `{"kind": "Service", "spec": {"selector": {"a": "b"}}}`, covers: true,
		},
		"a key more in a selector": {
			there:  `{"metadata": {"uid": "u"}, "spec": {"selector": {"a": "b", "c": "d"}}}`,
			wanted: `{"kind": "Service", "spec": {"selector": {"a": "b"}}}`, covers: true,
			surplus: `{"metadata":{"uid":"u"},"spec":{"selector":{"c":null}}}`,
		},
		"and another value": {
			there:   `{"metadata": {"uid": "u"}, "spec": {"selector": {"a": "x", "c": "d", "e": "f"}}}`,
			wanted:  `{"kind": "Service", "spec": {"selector": {"a": "b"}}}`,
			surplus: `{"metadata":{"uid":"u"},"spec":{"selector":{"c":null,"e":null}}}`,
		},
		"another value alone": {
			there:  `{"metadata": {"uid": "u"}, "spec": {"selector": {"a": "x"}}}`,
			wanted: `{"kind": "Service", "spec": {"selector": {"a": "b"}}}`,
		},
		"labels and annotations are others' as well": {
			there:  `{"metadata": {"uid": "u", "labels": {"a": "b", "c": "d"}, "annotations": {"e": "f"}}}`,
			wanted: `{"kind": "Service", "metadata": {"labels": {"a": "b"}}}`, covers: true,
		},
		"a selector that is not ours": {
			there:  `{"metadata": {"uid": "u"}, "spec": {"selector": {"a": "b"}, "clusterIP": "None"}}`,
			wanted: `{"kind": "Service", "spec": {"clusterIP": "None"}}`, covers: true,
		},
		"files more": {
			there:  `{"metadata": {"uid": "u"}, "data": {"hostfile": "a", "z.sh": "exit"}}`,
			wanted: `{"kind": "ConfigMap", "data": {"hostfile": "a"}}`, covers: true,
			surplus: `{"data":{"z.sh":null},"metadata":{"uid":"u"}}`,
		},
		"a resource more": {
			there:  `{"metadata": {"uid": "u"}, "spec": {"minMember": 1, "minResources": {"cpu": "1", "nvidia.com/gpu": "9"}}}`,
			wanted: `{"kind": "PodGroup", "spec": {"minMember": 1, "minResources": {"cpu": "1"}}}`, covers: true,
			surplus: `{"metadata":{"uid":"u"},"spec":{"minResources":{"nvidia.com/gpu":null}}}`,
		},
		"a kind without such maps": {
			there:  `{"metadata": {"uid": "u"}, "data": {"a": "b", "c": "d"}}`,
			wanted: `{"kind": "Secret", "data": {"a": "b"}}`, covers: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var there, wanted map[string]any
			if err := json.Unmarshal([]byte(tc.there), &there); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(tc.wanted), &wanted); err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{Object: wanted}
			patch, err := surplus(there, object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{tc.covers, tc.surplus}, []any{covers(there, object), string(patch)}); diff != "" {
				t.Errorf("covers, surplus (-want +got):\n%s", diff)
			}
		})
	}
}

// A label more in a selector, and the service leads nowhere.
func TestLoopTakesBackWhatOthersAddToASelector(t *testing.T) {
	b := newBench(t, fixtures.TrainingJob("a", fixtures.Workers(1)))
	b.reconcile()
	b.reconcile()
	service := &corev1.Service{}
	read := func() {
		t.Helper()
		if err := b.client.Get(t.Context(), key("a-worker-0"), service); err != nil {
			t.Fatal(err)
		}
	}
	read()
	want := service.DeepCopy().Spec.Selector
	for _, others := range []string{"", "x"} {
		service.Spec.Selector["a"] = "b"
		for key := range want {
			if others != "" {
				service.Spec.Selector[key] = others
			}
		}
		if err := b.client.Update(t.Context(), service); err != nil {
			t.Fatal(err)
		}
		b.reconcile()
		read()
		if diff := cmp.Diff(want, service.Spec.Selector); diff != "" {
			t.Errorf("selector (-want +got):\n%s", diff)
		}
		if _, writes := b.reconcile(); writes != nil {
			t.Errorf("writes %v once it is healed", writes)
		}
	}
}
