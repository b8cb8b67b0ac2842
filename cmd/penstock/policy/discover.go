package policy

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/penstock-dev/penstock/cmd/penstock/check"
)

const (
	regoSuffix     = ".rego"
	regoTestSuffix = "_test.rego"
	// casesFolder is what the folder of cases beside policies is called.
	casesFolder = "cases"
)

// foundTests are the files of tests below some paths.
type foundTests struct {
	byFolder map[string]*foundFolder
	suites   []string
}

// foundFolder is the files of tests that are about the policies of a folder.
type foundFolder struct {
	path        string
	rego, cases []string
}

// folders gives the folders in the order of their paths.
func (f *foundTests) folders() []*foundFolder {
	return slices.SortedFunc(maps.Values(f.byFolder), func(a, b *foundFolder) int { return cmp.Compare(a.path, b.path) })
}

func (f *foundTests) folder(path string) *foundFolder {
	if f.byFolder[path] == nil {
		f.byFolder[path] = &foundFolder{path: path}
	}
	return f.byFolder[path]
}

// findTests looks for tests in folders and those below, and takes files as they
// are. Hidden folders are left out.
func findTests(paths []string) (*foundTests, []error) {
	found := &foundTests{byFolder: map[string]*foundFolder{}}
	var errs []error
	for _, root := range paths {
		info, err := os.Stat(root)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), "."):
				return filepath.SkipDir
			case entry.IsDir():
				return nil
			}
			isTest, err := found.take(path)
			if err == nil && !isTest && !info.IsDir() {
				err = fmt.Errorf("%s is no file of tests: name the folder %s, tests lie beside policies", path, filepath.Dir(path))
			}
			return err
		})
		if err != nil {
			errs = append(errs, err)
		}
	}
	return found, errs
}

// isCase finds the members of a case that other YAML in a folder called cases,
// such as the objects that cases name, would not have: one of them is enough, or
// a case that lacks another would be passed over. isPolicy finds a policy.
var (
	caseMembers = []string{"expect", "object", "oldObject", "violations", "unasked", "policyParameters"}
	isCase      = regexp.MustCompile(`(?m)^\s*(` + strings.Join(caseMembers, "|") + `):`)
	isPolicy    = regexp.MustCompile(`(?m)^[\s-]*kind:\s*["']?WorkloadPolicy\b`)
)

// isTestRule finds rules that opa test would run.
var isTestRule = regexp.MustCompile(`(?m)^\s*(?:todo_)?(test_\w+)\s*(?:\[[^\]\n]*\]\s*)?(?:if\b|\{|:=|=[^=]|contains\b|$)`)

// holdsCases reports whether a text holds cases, in whichever style they are
// written. Cases in a list would be passed over: that is an error.
func holdsCases(path string, text []byte) (bool, error) {
	found := false
	for _, document := range check.Documents(text) {
		var value any
		if err := yaml.Unmarshal(document.Text, &value); err != nil {
			// What is wrong with it is said where it is read.
			found = found || isCase.Match(document.Text)
			continue
		}
		if list, ok := value.([]any); ok && slices.ContainsFunc(list, isCaseObject) {
			return false, fmt.Errorf("%s: line %d: cases in a list are not read: make each a document of its own, with --- between them", path, document.Line)
		}
		found = found || isCaseObject(value)
	}
	return found, nil
}

func isCaseObject(value any) bool {
	object, _ := value.(map[string]any)
	return slices.ContainsFunc(caseMembers, func(name string) bool { _, there := object[name]; return there })
}

// strayTests is an error where Rego that is no file of tests has some, which
// nothing would run.
func strayTests(path string, text []byte) error {
	if found := isTestRule.FindSubmatch(text); found != nil {
		return fmt.Errorf("%s: %s is never run: tests lie in files that end in %s, beside the policy", path, found[1], regoTestSuffix)
	}
	return nil
}

// take notes a file that has to do with tests, and reports whether it is one.
func (f *foundTests) take(path string) (isTest bool, err error) {
	folder := filepath.Dir(path)
	if strings.HasSuffix(path, regoTestSuffix) {
		note(&f.folder(folder).rego, path)
		return true, nil
	}
	if _, inCases := aboveCases(folder); !mayHoldTests(path, inCases) {
		return false, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	if strings.HasSuffix(path, regoSuffix) {
		return false, strayTests(path, text)
	}
	if above, inCases := aboveCases(folder); inCases {
		return f.takeFromCases(path, text, above)
	}
	if isPolicy.Match(text) {
		if err := strayTests(path, text); err != nil {
			return false, err
		}
		// It counts as not covered, whether it has tests or not.
		f.folder(folder)
	}
	return f.takeSuite(path, text)
}

// mayHoldTests reports whether a file is to be read, by its name.
func mayHoldTests(path string, inCases bool) bool {
	return isYAML(path) || strings.HasSuffix(path, regoSuffix) || inCases && filepath.Ext(path) == ".json"
}

// takeFromCases is take of a file in a folder of cases. A suite may lie there as well.
func (f *foundTests) takeFromCases(path string, text []byte, above string) (isTest bool, err error) {
	cases, err := holdsCases(path, text)
	if cases {
		note(&f.folder(above).cases, path)
	}
	if cases || err != nil {
		return cases, err
	}
	return f.takeSuite(path, text)
}

func (f *foundTests) takeSuite(path string, text []byte) (isTest bool, err error) {
	if !bytes.Contains(text, []byte(suiteGroup)) {
		return false, nil
	}
	suite, err := ReadSuite(path)
	if err != nil || suite == nil {
		return false, err
	}
	note(&f.suites, path)
	return true, nil
}

// note adds a path that is named once or more.
func note(paths *[]string, path string) {
	if !slices.Contains(*paths, path) {
		*paths = append(*paths, path)
	}
}

func isYAML(path string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path))
}

// aboveCases gives the folder whose policies the cases in a folder are about.
func aboveCases(folder string) (above string, ok bool) {
	// A relative path may begin within the folder of cases.
	for at, full := folder, absolute(folder); ; at, full = filepath.Join(at, ".."), filepath.Dir(full) {
		if filepath.Base(full) == casesFolder {
			return filepath.Join(at, ".."), true
		}
		if full == filepath.Dir(full) {
			return "", false
		}
	}
}

func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}
