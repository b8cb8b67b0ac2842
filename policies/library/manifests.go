package library

import (
	"bytes"
	"fmt"
	"path"
	"strings"
)

//go:generate go run ./generate ../../config/policies

// Manifests returns the files of config/policies by name: a manifest for each
// policy, with its Rego as a block that can be read and edited in place, and a
// kustomization of them all.
func Manifests() (map[string][]byte, error) {
	names, err := Names()
	if err != nil {
		return nil, err
	}
	manifests := map[string][]byte{}
	var resources strings.Builder
	for _, name := range names {
		manifest, err := manifestOf(name)
		if err != nil {
			return nil, fmt.Errorf("failed to make the manifest of policy %s: %w", name, err)
		}
		manifests[name+".yaml"] = manifest
		fmt.Fprintf(&resources, "- %s.yaml\n", name)
	}
	manifests["kustomization.yaml"] = []byte(generated("policies/library") +
		"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n" + resources.String())
	return manifests, nil
}

// manifestOf joins policy.yaml, which ends within spec, and policy.rego. The
// first is kept as it is written, comments and all.
func manifestOf(name string) ([]byte, error) {
	policy, err := load(name)
	if err != nil {
		return nil, err
	}
	text, err := files.ReadFile(path.Join(name, "policy.yaml"))
	if err != nil {
		return nil, err
	}
	var manifest bytes.Buffer
	manifest.WriteString(generated("policies/library/" + name))
	manifest.Write(text)
	manifest.WriteString("  rego: |\n")
	for line := range strings.Lines(policy.Spec.Rego) {
		if strings.TrimSpace(line) != "" {
			manifest.WriteString("    ")
		}
		manifest.WriteString(line)
	}
	return manifest.Bytes(), nil
}

func generated(from string) string {
	return fmt.Sprintf("# Generated from %s; edit it there and run `go generate ./policies/library`.\n", from)
}
