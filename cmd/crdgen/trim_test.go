package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Sample is a kind with each way of holding a type of Kubernetes.
type Sample struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec SampleSpec `json:"spec,omitzero"`
}

type SampleSpec struct {
	Ports    []corev1.ContainerPort         `json:"ports,omitempty"`
	Template *corev1.PodTemplateSpec        `json:"template,omitempty"`
	Probes   map[string]corev1.ProbeHandler `json:"probes,omitempty"`
	Selector *metav1.LabelSelector          `json:"selector,omitempty"`
	Limit    int64                          `json:"limit,omitempty"`
	Roles    map[string]*SampleRole         `json:"roles,omitempty"`
	Counts   map[string]SampleRole          `json:"counts,omitempty"`
}

type SampleRole struct {
	Limit int64 `json:"limit,omitempty"`
}

func (s *Sample) DeepCopyObject() runtime.Object { return s }

func sampleScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Sample"}, &Sample{})
	return scheme
}

// manifest is the CustomResourceDefinition of Sample with the given spec
// properties, indented by 16 columns.
func manifest(properties string) string {
	return `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: example.com
  names:
    kind: Sample
    plural: samples
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        description: Sample is ours.
        properties:
          spec:
            description: spec is ours.
            properties:
` + properties
}

func TestTrim(t *testing.T) {
	tests := map[string]struct {
		properties string
		want       string
	}{
		"below a template only the field's own description stays": {
			properties: `
              template:
                description: template of the pods.
                properties:
                  spec:
                    description: gone
                    type: object
                type: object
`,
			want: `
              template:
                description: template of the pods.
                properties:
                  spec:
                    type: object
                type: object
`,
		},
		"a map of pointers may hold null": {
			properties: `
              counts:
                additionalProperties:
                  type: object
                type: object
              roles:
                additionalProperties:
                  type: object
                type: object
`,
			want: `
              counts:
                additionalProperties:
                  type: object
                type: object
              roles:
                additionalProperties:
                  nullable: true
                  type: object
                type: object
`,
		},
		"a field that is called description stays": {
			properties: `
              template:
                properties:
                  description:
                    description: gone
                    type: string
`,
			want: `
              template:
                properties:
                  description:
                    type: string
`,
		},
		"elements of lists and maps are trimmed": {
			properties: `
              ports:
                description: ports are ours.
                items:
                  properties:
                    name:
                      description: gone
                      type: string
                type: array
              probes:
                additionalProperties:
                  properties:
                    exec:
                      description: gone
                      type: object
                description: probes are ours.
`,
			want: `
              ports:
                description: ports are ours.
                items:
                  properties:
                    name:
                      type: string
                type: array
              probes:
                additionalProperties:
                  properties:
                    exec:
                      type: object
                description: probes are ours.
`,
		},
		"what apimachinery declares keeps its descriptions": {
			properties: `
              selector:
                properties:
                  matchLabels:
                    description: stays
                    type: object
`,
			want: `
              selector:
                properties:
                  matchLabels:
                    description: stays
                    type: object
`,
		},
		"numbers are kept to the digit": {
			properties: `
              limit:
                maximum: 9223372036854775807
                minimum: 100000000
`,
			want: `
              limit:
                maximum: 9223372036854775807
                minimum: 100000000
`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := trim([]byte(manifest(strings.TrimPrefix(tc.properties, "\n"))), sampleScheme())
			if err != nil {
				t.Fatalf("trim: %v", err)
			}
			want := map[string]string{"example.com_samples.yaml": manifest(strings.TrimPrefix(tc.want, "\n"))}
			gotText := map[string]string{}
			for file, content := range got {
				gotText[file] = string(content)
			}
			if diff := cmp.Diff(want, gotText); diff != "" {
				t.Errorf("manifests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTrimRefuses(t *testing.T) {
	tests := map[string]struct {
		stream  string
		wantErr string
	}{
		"a kind that the scheme does not know": {
			stream:  strings.ReplaceAll(manifest(""), "kind: Sample", "kind: Stranger"),
			wantErr: "failed to find the Go type of Stranger",
		},
		"a manifest that kubectl apply could not keep": {
			stream:  manifest("              limit:\n                description: " + strings.Repeat("x", maxBytes)),
			wantErr: "client-side kubectl apply would be refused",
		},
		"what is not YAML": {
			stream:  "{",
			wantErr: "failed to read a CustomResourceDefinition",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := trim([]byte(tc.stream), sampleScheme())
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error: got %v, want it to contain %q", err, tc.wantErr)
			}
		})
	}
}

func TestTrimSplitsTheStream(t *testing.T) {
	stream := manifest("              limit: {}\n") + strings.ReplaceAll(manifest("              limit: {}\n"), "samples", "others")
	got, err := trim([]byte(stream), sampleScheme())
	if err != nil {
		t.Fatalf("trim: %v", err)
	}
	if len(got) != 2 || got["example.com_samples.yaml"] == nil || got["example.com_others.yaml"] == nil {
		t.Errorf("manifests: got %d, want one for samples and one for others", len(got))
	}
}
