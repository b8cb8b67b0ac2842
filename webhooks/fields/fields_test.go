package fields_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-dev/penstock/webhooks/fields"
)

func TestOf(t *testing.T) {
	var (
		pod        = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
		deployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
		configMap  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
		hook       = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}
		job        = schema.GroupVersionKind{Group: "penstock.dev", Version: "v1", Kind: "TrainingJob"}
		policy     = schema.GroupVersionKind{Group: "penstock.dev", Version: "v1", Kind: "WorkloadPolicy"}
		widget     = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	)
	type answer struct{ known, sure bool }
	yes, no, unsure := answer{true, true}, answer{false, true}, answer{false, false}
	tests := []struct {
		kind schema.GroupVersionKind
		path string
		want answer
	}{
		{pod, "spec", yes},
		{pod, "spec.containers[0].image", yes},
		{pod, "spec.contaners[0].image", no},
		{pod, "spec.containers[first].image", no},
		{pod, "spec.containers.image", no},
		{pod, "spec.template", no},
		{pod, "spec.containers[0].resources.limits[nvidia.com/gpu]", yes},
		{pod, "spec.containers[0].resources.limits.nvidia.com/gpu", yes},
		{pod, "spec.containers[0].livenessProbe.httpGet.port", yes},
		{pod, "spec.containers[0].livenessProbe.httpGet.port.number", no},
		{pod, "spec.volumes[0].emptyDir.medium", yes},
		{pod, "metadata.labels[owner]", yes},
		{pod, "metadata.labels.app.kubernetes.io/name", yes},
		{pod, "metadata.lables[owner]", no},
		{pod, "metadata.name", yes},
		{pod, "kind", yes},
		{pod, "metadata.creationTimestamp.year", no},
		{deployment, "spec.template.spec.containers[0].image", yes},
		{deployment, "spec.containers[0].image", no},
		{configMap, "data.k", yes},
		{configMap, "date.k", no},
		{configMap, "binaryData[a.bin]", yes},
		{hook, "webhooks[0].rules[0].apiGroups[0]", yes},
		{hook, "spec", no},
		{job, "spec.runPolicy.backoffLimit", yes},
		{job, "spec.runpolicy.backoffLimit", no},
		{job, "spec.roles[0].template.spec.containers[0].resources.requests[nvidia.com/gpu]", yes},
		{job, "spec.roles.template", no},
		{job, "spec.roles[0].template.metadata.labels[a/b.c]", yes},
		{job, "metadata.annotations[a/b]", yes},
		{job, "metadata.owner", no},
		{policy, "spec.parameters.anything", unsure},
		{widget, "spec.size", unsure},
		{widget, "metadata.labels[a]", yes},
		{widget, "metadata.label", no},
		{widget, "kind.a", no},
		{pod, "", no},
	}
	for _, tc := range tests {
		known, sure := fields.Of(tc.kind)(tc.path)
		if got := (answer{known, sure}); got != tc.want {
			t.Errorf("%s of a %s: got %+v, want %+v", tc.path, tc.kind.Kind, got, tc.want)
		}
	}
}

func TestAlways(t *testing.T) {
	for path, want := range map[string]bool{
		"spec.template": true, "spec.template.spec": true, "spec.template.spec.nodeName": false, "spec.template.spec.containers": true, "metadata": true,
		"spec.template.spec.containers.*.resources": true, "spec.template.spec.containers.*.resources.limits": false, "metadata.labels": false, "metadata.labels.a": false, "spec.nothing": false,
	} {
		if got := fields.Always(appsv1.SchemeGroupVersion.WithKind("Deployment"), strings.Split(path, ".")); got != want {
			t.Errorf("%s: got %t", path, got)
		}
	}
	if fields.Always(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, []string{"spec"}) {
		t.Error("what objects of an unknown kind have is known")
	}
}
