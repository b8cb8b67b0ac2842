package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/cmd/penstock/check"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/library"
	"github.com/penstock-dev/penstock/policies/regotest"
)

// testFolder is the policies of a folder.
type testFolder struct {
	path     string
	policies []*penstockv1.WorkloadPolicy
	// warnings are what the cluster would warn the author of the policies of.
	warnings []string
	// worlds are what is compiled together: the Rego of each policy, once
	// where several have the same; and the files of Rego that belong to none.
	worlds []*world
}

// world is modules that are compiled together.
type world struct {
	// name is that of the policies whose Rego this is, or of a folder of files.
	name string
	// source is where the policy's Rego is written; nil of files, which are
	// called by their paths.
	source *check.Source
	// parse parses the modules anew: tests are added to them.
	parse    func() (*policies.Modules, []policies.RegoFault)
	coverage *regotest.Coverage
	policies []string
}

// measure has the lines counted that are evaluated from now on.
func (w *world) measure() { w.coverage = regotest.NewCoverage() }

// of gives the world of a policy.
func (f *testFolder) of(policy string) *world {
	i := slices.IndexFunc(f.worlds, func(w *world) bool { return slices.Contains(w.policies, policy) })
	return f.worlds[i]
}

// policyReader reads the policies of folders.
type policyReader struct{ checker *check.Checker }

func newPolicyReader(systemNamespaces []string) (*policyReader, error) {
	checker, err := check.New(check.Options{SystemNamespaces: systemNamespaces})
	return &policyReader{checker}, err
}

// read reads the policies of a folder, and its Rego.
func (r *policyReader) read(ctx context.Context, path string) (*testFolder, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var objects []check.Object
	files := map[string]string{}
	for _, entry := range entries {
		file := filepath.Join(path, entry.Name())
		switch {
		case entry.IsDir() || strings.HasSuffix(file, regoTestSuffix):
		case filepath.Ext(file) == regoSuffix:
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			files[file] = string(text)
		case isYAML(file):
			found, err := policiesIn(file)
			if err != nil {
				return nil, err
			}
			objects = append(objects, found...)
		}
	}
	folder := &testFolder{path: path}
	sources := check.Sources(objects)
	if err := takeSidecars(objects, files, sources); err != nil {
		return nil, err
	}
	if err := dropCopies(objects, files); err != nil {
		return nil, err
	}
	if objects, err = withTwin(path, objects, sources); err != nil {
		return nil, err
	}
	if len(objects) > 0 {
		if folder.policies, folder.warnings, err = r.checker.Policies(ctx, objects); err != nil {
			return nil, err
		}
	}
	for _, policy := range folder.policies {
		folder.addPolicy(policy, sources[policy.Name])
	}
	folder.addFiles(files)
	return folder, nil
}

// policiesIn reads the WorkloadPolicies of a file; other objects may lie beside.
func policiesIn(file string) ([]check.Object, error) {
	text, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(text, []byte(penstockv1.WorkloadPolicyKind)) {
		return nil, err
	}
	objects, unreadable := check.Read(file, text)
	if len(unreadable) > 0 {
		return nil, unreadable[0]
	}
	return slices.DeleteFunc(objects, func(object check.Object) bool {
		head := headOf(object)
		return head.Kind != penstockv1.WorkloadPolicyKind || !strings.HasPrefix(head.APIVersion, penstockv1.GroupName+"/")
	}), nil
}

// policyHead is what is read of a policy before it is held to anything.
type policyHead struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec map[string]json.RawMessage `json:"spec"`
}

func headOf(object check.Object) policyHead {
	var head policyHead
	// What is no policy has no kind here, and is said to be none by others.
	_ = json.Unmarshal(object.JSON, &head)
	return head
}

// takeSidecars gives policies without spec.rego that of the file beside them,
// policy.rego beside policy.yaml, as the library is written.
func takeSidecars(objects []check.Object, files map[string]string, sources map[string]check.Source) error {
	for i, object := range objects {
		head := headOf(object)
		beside := strings.TrimSuffix(object.File, filepath.Ext(object.File)) + regoSuffix
		text, exists := files[beside]
		if head.Spec == nil || head.Spec["rego"] != nil || !exists {
			continue
		}
		var err error
		if objects[i].JSON, err = withRego(object, text); err != nil {
			return err
		}
		sources[head.Metadata.Name] = check.Source{File: beside, Libs: sources[head.Metadata.Name].Libs}
		delete(files, beside)
	}
	return nil
}

// withRego gives a policy with its Rego.
func withRego(object check.Object, text string) ([]byte, error) {
	rego, err := json.Marshal(text)
	if err != nil {
		return nil, err
	}
	var members, spec map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(object.JSON, &members), json.Unmarshal(members["spec"], &spec)); err != nil {
		return nil, err
	}
	spec["rego"] = rego
	if members["spec"], err = json.Marshal(spec); err != nil {
		return nil, err
	}
	return json.Marshal(members)
}

// withTwin adds the policy that pods.yaml makes of policy.yaml in the library.
func withTwin(path string, objects []check.Object, sources map[string]check.Source) ([]check.Object, error) {
	pods, err := os.ReadFile(filepath.Join(path, "pods.yaml"))
	file := filepath.Join(path, "policy.yaml")
	i := slices.IndexFunc(objects, func(object check.Object) bool { return object.File == file })
	if errors.Is(err, os.ErrNotExist) || i < 0 {
		return objects, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	name := headOf(objects[i]).Metadata.Name
	source := sources[name]
	if source.File == file {
		return objects, nil // pods.yaml is something else
	}
	rego, err := os.ReadFile(source.File)
	if err != nil {
		return nil, err
	}
	more, err := os.ReadFile(filepath.Join(path, "pods.cel"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if text, err = library.Twin(name, text, pods, more); err != nil {
		return nil, err
	}
	twins, unreadable := check.Read(file, text)
	if len(unreadable) > 0 {
		return nil, unreadable[0]
	}
	if twins[0].JSON, err = withRego(twins[0], string(rego)); err != nil {
		return nil, err
	}
	sources[headOf(twins[0]).Metadata.Name] = source
	return append(objects, twins...), nil
}

// addPolicy adds the Rego of a policy, unless that of another is the same.
func (f *testFolder) addPolicy(policy *penstockv1.WorkloadPolicy, source check.Source) {
	rego, libs := policy.Spec.Rego, policy.Spec.Libs
	for i, other := range f.policies {
		if other == policy {
			break
		}
		if strings.TrimSpace(other.Spec.Rego) == strings.TrimSpace(rego) && slices.Equal(other.Spec.Libs, libs) {
			same := f.of(f.policies[i].Name)
			same.policies = append(same.policies, policy.Name)
			return
		}
	}
	f.worlds = append(f.worlds, &world{
		name: policy.Name, source: &source, policies: []string{policy.Name},
		parse: func() (*policies.Modules, []policies.RegoFault) { return policies.Parse(rego, libs...) },
	})
}

// addFiles adds the files of Rego that are of no policy.
func (f *testFolder) addFiles(files map[string]string) {
	if len(files) > 0 {
		f.worlds = append(f.worlds, &world{
			name: f.path, parse: func() (*policies.Modules, []policies.RegoFault) { return policies.ParseFiles(files) },
		})
	}
}

// dropCopies leaves out the files that hold what a policy holds. It is an error
// if one has something to add to a policy's package: that would be there in
// tests and not in the cluster.
func dropCopies(objects []check.Object, files map[string]string) error {
	for _, object := range objects {
		head := headOf(object)
		var rego string
		if json.Unmarshal(head.Spec["rego"], &rego) != nil {
			continue // which is said of the policy
		}
		for file, text := range files {
			switch {
			case regotest.Package(text) != regotest.Package(rego):
			case strings.TrimSpace(text) == strings.TrimSpace(rego):
				delete(files, file)
			default:
				return fmt.Errorf("%s fills the package of policy %s and is no part of it: move it to spec.rego, or to spec.libs in a package below lib", file, head.Metadata.Name)
			}
		}
	}
	return nil
}

// lineOf gives the file that a module is written in and the line in it, or,
// where the file does not hold the module line by line, the module's own.
func (w *world) lineOf(module string, line int) (string, int) {
	if w.source == nil {
		return module, line
	}
	source, field := *w.source, "spec.rego"
	if i := policies.LibOf(module); i > 0 {
		field = fmt.Sprintf("spec.libs[%d]", i-1)
		source = check.Source{File: w.source.File, Before: -1}
		if i <= len(w.source.Libs) {
			source = w.source.Libs[i-1]
		}
	}
	if found := source.Line(line); found > 0 {
		return source.File, found
	}
	return source.File + " (" + field + ")", line
}

// faults says where a policy or its tests do not compile.
func (w *world) faults(found []policies.RegoFault) error {
	lines := make([]string, len(found))
	for i, fault := range found {
		file, line := fault.File, fault.Line
		if file == "" {
			file, line = w.lineOf(fault.Module(), fault.Line)
		}
		lines[i] = fmt.Sprintf("%s:%d:%d: %s: %s", file, line, fault.Column, fault.Code, fault.Message)
	}
	return errors.New(strings.Join(lines, "\n"))
}
