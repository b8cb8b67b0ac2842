// Package library is the policy library that comes with Penstock: for each
// policy a folder with policy.yaml (what it matches, its parameters),
// policy.rego, policy_test.rego (unit tests in Rego) and cases (objects with
// the verdict they must get). The folder lib holds the Rego that policies
// share as data.penstock.
//
// A folder with pods.yaml is two policies: besides the one for Penstock's own
// kinds, which policy.yaml is, its twin <policy>-pods. That is the same in all
// but what it matches: the kinds of Kubernetes in pods.yaml, and of them, by a
// match condition, only what asks for an extended resource or makes a claim. A
// file pods.cel names in CEL what else the twin is asked about, such as a variable
// that gives devices to who asks for none.
// The condition is why they are two: the API server asks by one webhook what
// has a condition and by another what has none, and all that is to be said to a
// training job is said in one answer.
//
// A file in cases holds one or more YAML documents:
//
//	name: a sentence
//	policyParameters: {}       # in place of the policy's own; optional
//	operation: CREATE          # UPDATE when there is an oldObject; optional
//	subResource: scale         # optional
//	inventory: []              # objects that the cluster has; optional
//	object: {}
//	oldObject: {}              # optional
//	unasked: true              # the API server does not ask: a condition fails
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
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// sharedDir holds the modules of data.penstock.
const sharedDir = "lib"

//go:embed */policy.yaml */pods.yaml */pods.cel */policy.rego lib/*.rego lib/*.cel
var files embed.FS

// twinSuffix is what the name of the twin for kinds of Kubernetes ends in.
const twinSuffix = "-pods"

// Shared returns the texts of the shared Rego modules by file name.
func Shared() map[string]string {
	modules := map[string]string{}
	entries, err := files.ReadDir(sharedDir)
	if err != nil {
		panic(err) // the folder is part of the binary
	}
	for _, entry := range entries {
		if path.Ext(entry.Name()) != ".rego" || strings.HasSuffix(entry.Name(), "_test.rego") {
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

// Names returns the names of the library's policies in order, twins included.
func Names() ([]string, error) {
	folders, err := fs.Glob(files, "*/policy.yaml")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, manifest := range folders {
		folder := path.Dir(manifest)
		names = append(names, folder)
		if _, err := fs.Stat(files, path.Join(folder, "pods.yaml")); err == nil {
			names = append(names, folder+twinSuffix)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Folder returns the folder of a policy; a twin is in that of the other.
func Folder(name string) string {
	return strings.TrimSuffix(name, twinSuffix)
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
	manifest, err := manifestOf(name)
	if err != nil {
		return nil, err
	}
	policy := &v1.WorkloadPolicy{}
	if err := yaml.UnmarshalStrict(manifest, policy); err != nil {
		return nil, err
	}
	if policy.Name != name {
		return nil, fmt.Errorf("metadata.name is %q and must be %s, after the folder", policy.Name, name)
	}
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
