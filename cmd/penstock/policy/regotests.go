package policy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/regotest"
)

// runRego runs the tests of a folder that are written in Rego.
func (r *testRun) runRego(ctx context.Context, folder *testFolder, files []string) {
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			r.fail(err)
			continue
		}
		if _, faults := policies.ParseFiles(map[string]string{file: string(text)}); faults != nil {
			r.fail(faultsIn(file, faults))
			continue
		}
		texts[file] = string(text)
	}
	claimed := map[string]bool{}
	for _, world := range folder.worlds {
		tests := world.testsAmong(texts, claimed)
		if len(tests) > 0 {
			r.runWorld(ctx, world, tests)
		}
	}
	idle := regotest.Idle(texts)
	for _, file := range files {
		if claimed[file] && slices.Contains(idle, file) {
			r.fail(fmt.Errorf("%s has no test, and no other file of tests uses it: begin the name of a rule with test_", file))
		}
		if texts[file] != "" && !claimed[file] {
			r.fail(fmt.Errorf("%s tests nothing of its folder: %s", file, folder.testable()))
		}
	}
}

// faultsIn says where a file cannot be read as Rego.
func faultsIn(file string, faults []policies.RegoFault) error {
	lines := make([]string, len(faults))
	for i, fault := range faults {
		lines[i] = fmt.Sprintf("%s:%d:%d: %s: %s", file, fault.Line, fault.Column, fault.Code, fault.Message)
	}
	return errors.New(strings.Join(lines, "\n"))
}

// testsAmong gives the files that test a world. Those that are about no policy
// are about the files of Rego beside them.
func (w *world) testsAmong(texts map[string]string, claimed map[string]bool) map[string]string {
	modules, faults := w.parse()
	if faults != nil {
		return texts // which says so
	}
	tests := map[string]string{}
	for file, text := range texts {
		if w.source == nil && !claimed[file] || w.source != nil && regotest.Concerns(modules, text) {
			tests[file] = text
		}
	}
	for file := range tests {
		claimed[file] = true
	}
	return tests
}

// testable says what tests in a folder may be about.
func (f *testFolder) testable() string {
	var packages []string
	for _, policy := range f.policies {
		if name := "data." + regotest.Package(policy.Spec.Rego); !slices.Contains(packages, name) {
			packages = append(packages, name)
		}
	}
	if len(packages) == 0 {
		return "there is no WorkloadPolicy and no other Rego beside it"
	}
	return "import the package of a policy, " + strings.Join(packages, " or ")
}

// runWorld runs the tests of one world.
func (r *testRun) runWorld(ctx context.Context, world *world, files map[string]string) {
	modules, faults := world.parse()
	if faults != nil {
		r.fail(world.faults(faults))
		return
	}
	suite, faults := regotest.Parse(modules, files)
	if faults != nil {
		r.fail(world.faults(faults))
		return
	}
	var selected []regotest.Test
	for _, test := range suite.Tests() {
		if r.selects(test.File, test.Name) {
			selected = append(selected, test)
		}
	}
	results, faults := suite.Run(ctx, selected, world.coverage, r.options.Timeout)
	if faults != nil {
		r.fail(world.faults(faults))
		return
	}
	for _, result := range results {
		r.add(regoResult(result))
	}
}

func regoResult(from regotest.Result) TestResult {
	made := TestResult{
		Kind: "rego", File: from.File, Line: from.Line, Name: from.Name, Outcome: Passed,
		Output: from.Output, Seconds: from.Took.Seconds(),
	}
	if from.Case != "" {
		made.Name += "/" + from.Case
	}
	switch {
	case from.Todo:
		made.Outcome = Skipped
	case from.Err != nil:
		made.Outcome, made.Message = Failed, from.Err.Error()
	case !from.Passed:
		made.Outcome, made.Message = Failed, "is not true"
		if from.FailedAt > 0 {
			made.Message = fmt.Sprintf("%s:%d: is not true: %s", from.File, from.FailedAt, from.Text)
		}
	}
	return made
}
