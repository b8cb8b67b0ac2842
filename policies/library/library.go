// Package library is the policy library that comes with Penstock: for each
// policy a folder with policy.yaml (what it matches, its parameters),
// policy.rego, policy_test.rego (unit tests in Rego) and cases (objects with
// the verdict they must get). The folder lib holds the Rego that policies
// share as data.penstock.
//
// A file in cases holds one or more YAML documents:
//
//	name: a sentence
//	policyParameters: {}       # in place of the policy's own; optional
//	operation: CREATE          # UPDATE when there is an oldObject; optional
//	subResource: scale         # optional
//	object: {}
//	oldObject: {}              # optional
//	expect: deny               # allow, warn or deny
//	violations:                # all of them
//	- field: spec.roles[0].replicas
//	  message: a part of the message
package library

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// sharedDir holds the modules of data.penstock.
const sharedDir = "lib"

//go:embed */policy.yaml */policy.rego lib/*.rego
var files embed.FS

// Shared returns the texts of the shared Rego modules by file name.
func Shared() map[string]string {
	modules := map[string]string{}
	entries, err := files.ReadDir(sharedDir)
	if err != nil {
		panic(err) // the folder is part of the binary
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), "_test.rego") {
			continue
		}
		text, err := files.ReadFile(path.Join(sharedDir, entry.Name()))
		if err != nil {
			panic(err)
		}
		modules[entry.Name()] = string(text)
	}
	return modules
}

// Names returns the names of the library's policies in order.
func Names() ([]string, error) {
	manifests, err := fs.Glob(files, "*/policy.yaml")
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(manifests))
	for _, manifest := range manifests {
		names = append(names, path.Dir(manifest))
	}
	return names, nil
}

// Policies returns the library's policies in the order of their names. It
// fails when a policy's files do not fit together.
func Policies() ([]*v1.WorkloadPolicy, error) {
	names, err := Names()
	if err != nil {
		return nil, err
	}
	policies := make([]*v1.WorkloadPolicy, 0, len(names))
	for _, name := range names {
		policy, err := load(name)
		if err != nil {
			return nil, fmt.Errorf("failed to load policy %s: %w", name, err)
		}
		policies = append(policies, policy)
	}
	return policies, nil
}

func load(name string) (*v1.WorkloadPolicy, error) {
	manifest, err := files.ReadFile(path.Join(name, "policy.yaml"))
	if err != nil {
		return nil, err
	}
	policy := &v1.WorkloadPolicy{}
	if err := yaml.UnmarshalStrict(manifest, policy); err != nil {
		return nil, err
	}
	if policy.Name != name {
		return nil, fmt.Errorf("metadata.name is %q and must be that of the folder", policy.Name)
	}
	text, err := files.ReadFile(path.Join(name, "policy.rego"))
	if err != nil {
		return nil, err
	}
	policy.Spec.Rego = untabbed(string(text))
	return policy, nil
}

// untabbed indents by spaces. YAML cannot show a text with tabs as a block:
// kubectl edit would offer the Rego as one quoted line.
func untabbed(text string) string {
	var spaced strings.Builder
	for line := range strings.Lines(text) {
		code := strings.TrimLeft(line, "\t")
		spaced.WriteString(strings.Repeat("  ", len(line)-len(code)))
		spaced.WriteString(code)
	}
	return spaced.String()
}
