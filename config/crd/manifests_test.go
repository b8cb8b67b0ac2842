package crd_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/penstock-dev/penstock/config/crd"
)

// lastAppliedLimit is what the API server allows for all annotations of an
// object together; client-side apply puts the whole manifest into one.
const lastAppliedLimit = 262144

func TestAll(t *testing.T) {
	crds, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	if len(crds) < 2 {
		t.Fatalf("got %d definitions, want TrainingJob and WorkloadPolicy at least", len(crds))
	}
	for _, definition := range crds {
		t.Run(definition.Name, func(t *testing.T) {
			content, err := json.Marshal(definition)
			if err != nil {
				t.Fatal(err)
			}
			if len(content) >= lastAppliedLimit {
				t.Errorf("has %d bytes as JSON: client-side apply needs fewer than %d", len(content), lastAppliedLimit)
			}
			stored := slices.IndexFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
				return v.Storage
			})
			if stored < 0 || definition.Spec.Versions[stored].Name != "v1" {
				t.Error("v1 is not the storage version")
			}
			for _, version := range definition.Spec.Versions {
				reportOptionalKeys(t, version.Schema.OpenAPIV3Schema, version.Name)
			}
			if definition.Spec.Conversion != nil {
				t.Error("carries a conversion stanza: that belongs to the installation")
			}
		})
	}
}

// reportOptionalKeys finds what the API server refuses of a definition and the
// generator does not: a key of a list map that may be absent.
func reportOptionalKeys(t *testing.T, schema *apiextensionsv1.JSONSchemaProps, path string) {
	t.Helper()
	for _, key := range schema.XListMapKeys {
		item := schema.Items.Schema
		if !slices.Contains(item.Required, key) && item.Properties[key].Default == nil {
			t.Errorf("%s[].%s is a key of the list: it must be required or have a default", path, key)
		}
	}
	for name, property := range schema.Properties {
		reportOptionalKeys(t, &property, path+"."+name)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		reportOptionalKeys(t, schema.Items.Schema, path+"[]")
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		reportOptionalKeys(t, schema.AdditionalProperties.Schema, path+".*")
	}
}

func TestGet(t *testing.T) {
	definition, err := crd.Get(schema.GroupKind{Group: "penstock.dev", Kind: "TrainingJob"})
	if err != nil {
		t.Fatal(err)
	}
	if got := definition.Spec.Names.Plural; got != "trainingjobs" {
		t.Errorf("got plural %q", got)
	}
	if _, err := crd.Get(schema.GroupKind{Group: "penstock.dev", Kind: "PyTorchJob"}); err == nil {
		t.Error("an unknown kind has a definition")
	}
}

func TestKustomizationNamesEveryManifest(t *testing.T) {
	content, err := os.ReadFile("kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var kustomization struct {
		Resources []string `json:"resources"`
	}
	if err := yaml.Unmarshal(content, &kustomization); err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(crd.Manifests, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(names, kustomization.Resources) {
		t.Errorf("kustomization lists %v, embedded are %v", kustomization.Resources, names)
	}
}
