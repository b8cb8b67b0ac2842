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
// texts are kept as they are: encoding the object would fold the Rego into one
// quoted line, because of its tabs.
func manifestOf(name string) ([]byte, error) {
	var manifest bytes.Buffer
	manifest.WriteString(generated("policies/library/" + name))
	text, err := files.ReadFile(path.Join(name, "policy.yaml"))
	if err != nil {
		return nil, err
	}
	manifest.Write(text)
	rego, err := files.ReadFile(path.Join(name, "policy.rego"))
	if err != nil {
		return nil, err
	}
	manifest.WriteString("  rego: |\n")
	for line := range strings.Lines(string(rego)) {
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
