// Package crd embeds the generated CustomResourceDefinitions, so that the
// cluster, the validators and the command line hold objects against the same
// bytes.
//
// The files are generated from the types in api; the stanza that sends
// conversion to Penstock's webhook is not in them, because it names the
// Service of one installation. Whoever installs them adds it. The package
// imports no other room of the project.
package crd

import (
	"embed"
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Manifests holds the generated files, one CustomResourceDefinition each.
//
//go:embed penstock.dev_*.yaml
var Manifests embed.FS

// All returns every CustomResourceDefinition of the project, in the order of
// their file names. Each call decodes anew: the caller may change the result.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	names, err := fs.Glob(Manifests, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("failed to list the manifests: %w", err)
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(names))
	for _, name := range names {
		content, err := Manifests.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("failed to read %s: %w", name, err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			return nil, fmt.Errorf("failed to decode %s: %w", name, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// Get returns the CustomResourceDefinition of one kind. It is an error if
// there is none.
func Get(kind schema.GroupKind) (*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := All()
	if err != nil {
		return nil, err
	}
	for _, crd := range crds {
		if crd.Spec.Group == kind.Group && crd.Spec.Names.Kind == kind.Kind {
			return crd, nil
		}
	}
	return nil, fmt.Errorf("failed to find the CustomResourceDefinition of %s", kind)
}
