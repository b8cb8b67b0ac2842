// Package regotest runs unit tests that are written in Rego, rules whose names
// begin with test_, by OPA's own tester. What they test is compiled as the
// engine compiles it: with spec.libs, the shared library, and no other builtins
// than a policy may call.
//
//   - regotest.go finds and runs tests;
//   - coverage.go tells which lines were evaluated.
package regotest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/penstock-dev/penstock/policies"
)

// A Suite is tests with the modules that they test.
type Suite struct {
	modules *policies.Modules
	tests   []Test
}

// A Test is a rule.
type Test struct {
	// Name is package and rule, such as max_gpus_test.test_nine.
	Name string
	// File and Line are where it is written.
	File string
	Line int
	// Todo tells that its name begins with todo_test_: it is not run.
	Todo bool
	// ref is how the tester names it.
	ref string
}

// Parse adds files of tests, by name, to the modules that they test.
func Parse(modules *policies.Modules, files map[string]string) (*Suite, []policies.RegoFault) {
	s := &Suite{modules: modules}
	var faults []policies.RegoFault
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if more := modules.Add(name, files[name]); more != nil {
			faults = append(faults, more...)
			continue
		}
		s.tests = append(s.tests, testsIn(name, modules.ByName[name])...)
	}
	if faults != nil {
		return nil, faults
	}
	return s, nil
}

// Concerns reports whether a file of tests is about a policy: it is of the same
// package, or refers to that. It is not if it cannot be parsed.
func Concerns(modules *policies.Modules, text string) bool {
	file, err := policies.ParseFiles(map[string]string{"": text})
	if err != nil {
		return false
	}
	return uses(file.ByName[""], modules.ByName[modules.Own[0]].Package.Path)
}

// Idle lists the files, sorted, that hold no test and that no file with tests
// uses: none fills their package too, or refers to it. Files that cannot be
// parsed are left out.
func Idle(files map[string]string) []string {
	idle := map[string]*ast.Module{}
	var testing []*ast.Module
	for name, text := range files {
		file, faults := policies.ParseFiles(map[string]string{name: text})
		switch {
		case faults != nil:
		case len(testsIn(name, file.ByName[name])) > 0:
			testing = append(testing, file.ByName[name])
		default:
			idle[name] = file.ByName[name]
		}
	}
	for name, helper := range idle {
		if slices.ContainsFunc(testing, func(file *ast.Module) bool { return uses(file, helper.Package.Path) }) {
			delete(idle, name)
		}
	}
	return slices.Sorted(maps.Keys(idle))
}

// uses reports whether a module is of a package, or refers to it.
func uses(module *ast.Module, path ast.Ref) bool {
	found := module.Package.Path.Equal(path)
	ast.WalkRefs(module, func(ref ast.Ref) bool {
		found = found || ref.HasPrefix(path)
		return found
	})
	return found
}

// Package returns the name of the package that a text fills, empty if it cannot
// be parsed.
func Package(text string) string {
	file, err := policies.ParseFiles(map[string]string{"": text})
	if err != nil {
		return ""
	}
	return plain(file.ByName[""].Package.Path)
}

// Tests returns all tests in the order of their places.
func (s *Suite) Tests() []Test { return s.tests }

// testsIn finds the rules that are tests. Those of one name count up.
func testsIn(file string, module *ast.Module) []Test {
	var tests []Test
	count := map[string]int{}
	for _, rule := range module.Rules {
		path := rule.Head.Ref().GroundPrefix()
		at := slices.IndexFunc(path, func(term *ast.Term) bool {
			return strings.HasPrefix(nameOf(term), tester.TestPrefix) || strings.HasPrefix(nameOf(term), tester.SkipTestPrefix)
		})
		if at < 0 {
			continue
		}
		full := below(module.Package.Path, path[:at], nameOf(path[at]))
		test := Test{
			Name: plain(full), File: file, Line: rule.Location.Row, ref: full.String(),
			Todo: strings.HasPrefix(nameOf(path[at]), tester.SkipTestPrefix),
		}
		// The tester numbers them so.
		if n := count[test.ref]; n > 0 && !test.Todo {
			numbered := fmt.Sprintf("%s#%02d", nameOf(path[at]), n)
			count[test.ref]++
			test.ref, test.Name = below(module.Package.Path, path[:at], numbered).String(), fmt.Sprintf("%s#%02d", test.Name, n)
		} else {
			count[test.ref]++
		}
		tests = append(tests, test)
	}
	return tests
}

// below is the reference to a rule of a package.
func below(pkg, path ast.Ref, name string) ast.Ref {
	for _, term := range path {
		pkg = pkg.Append(ast.StringTerm(nameOf(term)))
	}
	return pkg.Append(ast.StringTerm(name))
}

func nameOf(term *ast.Term) string {
	switch value := term.Value.(type) {
	case ast.Var:
		return string(value)
	case ast.String:
		return string(value)
	}
	return ""
}

func plain(ref ast.Ref) string {
	return strings.TrimPrefix(ref.String(), "data.")
}

// A Result is what became of a test, or of one case of a test that has several.
type Result struct {
	Test
	// Case is that of a test with a name for each, such as test_sizes[name].
	Case string
	// Passed is false for one that failed and one that is to be written.
	Passed bool
	// FailedAt is the line of the test's file that was not true, 0 where that is
	// not known, and Text what it says.
	FailedAt int
	Text     string
	// Err is set where evaluation itself failed.
	Err error
	// Output is what print wrote.
	Output string
	Took   time.Duration
}

// Run runs some of the tests, each for no longer than the timeout, and has the
// coverage, if there is one, see it. It is an error if the tests do not compile
// with what they test.
func (s *Suite) Run(ctx context.Context, selected []Test, coverage *Coverage, timeout time.Duration) ([]Result, []policies.RegoFault) {
	if len(selected) == 0 {
		return nil, nil
	}
	results, err := s.run(ctx, selected, coverage, timeout)
	if err != nil {
		return nil, policies.RegoFaults(err)
	}
	var failed []Test
	for _, result := range results {
		if !result.Passed && !result.Todo && result.Err == nil && !slices.Contains(failed, result.Test) {
			failed = append(failed, result.Test)
		}
	}
	if len(failed) == 0 {
		return results, nil
	}
	// Tracing all would make each slower, and nothing is covered while traced.
	traced, err := s.run(ctx, failed, nil, timeout)
	if err != nil {
		return nil, policies.RegoFaults(err)
	}
	for i := range results {
		at := slices.IndexFunc(traced, func(r Result) bool { return r.Test == results[i].Test && r.Case == results[i].Case })
		if at >= 0 {
			results[i].FailedAt, results[i].Text = traced[at].FailedAt, traced[at].Text
		}
	}
	return results, nil
}

// run runs tests with coverage, or traced.
func (s *Suite) run(ctx context.Context, selected []Test, coverage *Coverage, timeout time.Duration) ([]Result, error) {
	names := make([]string, len(selected))
	for i, test := range selected {
		names[i] = regexp.QuoteMeta(test.ref)
	}
	store := inmem.New()
	txn, err := store.NewTransaction(ctx, storage.TransactionParams{})
	if err != nil {
		return nil, err
	}
	defer store.Abort(ctx, txn)
	runner := tester.NewRunner().
		SetCompiler(s.modules.Compiler().WithEnablePrintStatements(true)).
		SetModules(s.modules.ByName).
		SetStore(store).
		SetTimeout(timeout).
		Filter("^(" + strings.Join(names, "|") + ")$")
	if coverage != nil {
		runner.SetCoverageQueryTracer(coverage)
	} else {
		runner.EnableTracing(true)
	}
	found, err := runner.RunTests(ctx, txn)
	if err != nil {
		return nil, err
	}
	var results []Result
	for one := range found {
		at := slices.IndexFunc(selected, func(t Test) bool {
			return t.File == one.Location.File && t.Line == one.Location.Row && strings.HasSuffix(t.Name, "."+strings.Trim(one.Name, `"`))
		})
		if topdown.IsCancel(one.Error) && ctx.Err() == nil {
			one.Error = fmt.Errorf("did not finish within %v", timeout)
		}
		if at >= 0 {
			results = append(results, resultsOf(selected[at], one)...)
		}
	}
	slices.SortStableFunc(results, func(a, b Result) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Case, b.Case))
	})
	return results, nil
}

// resultsOf gives the result of a test, or those of its cases.
func resultsOf(test Test, from *tester.Result) []Result {
	made := Result{Test: test, Passed: from.Pass(), Err: from.Error, Output: string(from.Output), Took: from.Duration}
	if len(from.SubResults) == 0 {
		made.FailedAt, made.Text = failedAt(test, from.Trace)
		return []Result{made}
	}
	var results []Result
	for path, sub := range from.SubResults.Iter {
		if len(sub.SubResults) > 0 {
			continue
		}
		one := made
		one.Case, one.Passed = strings.Join(path, "/"), !sub.Fail
		if sub.Fail {
			one.FailedAt, one.Text = failedAt(test, sub.Trace)
		}
		results = append(results, one)
		made.Output = "" // said once
	}
	return results
}

// failedAt gives the furthest line of a test that was not true.
func failedAt(test Test, trace []*topdown.Event) (line int, text string) {
	for _, event := range trace {
		expr, is := event.Node.(*ast.Expr)
		if event.Op != topdown.FailOp || !is || expr.Location == nil || expr.Location.File != test.File {
			continue
		}
		if expr.Location.Row >= line && expr.Location.Row >= test.Line {
			line, text = expr.Location.Row, string(expr.Location.Text)
		}
	}
	text, _, _ = strings.Cut(text, "\n")
	return line, text
}
