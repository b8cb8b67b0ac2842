package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/library"
)

var update = flag.Bool("update", false, "write the golden files")

// TestMain has the library compiled once for all commands: what somebody holds is
// not compiled again.
func TestMain(m *testing.M) {
	engine := policies.NewEngine(policies.Options{})
	shipped, err := library.Policies()
	if err != nil {
		panic(err)
	}
	engine.Replace(shipped)
	code := m.Run()
	runtime.KeepAlive(engine)
	os.Exit(code)
}

// TestHelp shows what each command says of itself.
func TestHelp(t *testing.T) {
	for _, command := range []string{"", "check", "convert", "migrate", "policy", "policy import", "policy test", "version"} {
		t.Run("penstock "+command, func(t *testing.T) {
			got, code := runCommand(t, nil, append(strings.Fields(command), "--help")...)
			if code != 0 {
				t.Errorf("exit code %d", code)
			}
			name := strings.Join(append([]string{"penstock"}, strings.Fields(command)...), "-")
			t.Chdir("testdata/help")
			compareGolden(t, name+".golden.txt", got)
		})
	}
}

// What a mistyped command says must lead on.
func TestUnknownCommand(t *testing.T) {
	for args, want := range map[string]string{
		"chek":         `unknown command "chek" for "penstock"`,
		"check --al":   "unknown flag: --al",
		"policy tests": `unknown command "tests" for "penstock policy"`,
	} {
		got, code := runCommand(t, nil, strings.Fields(args)...)
		if code == 0 || !strings.Contains(got, want) {
			t.Errorf("penstock %s: exit code %d, %s", args, code, got)
		}
	}
}

// runCommand gives what penstock writes, with its errors as main writes them.
func runCommand(t *testing.T, stdin []byte, args ...string) (string, exitCode) {
	t.Helper()
	stdout, stderr, code := runStreams(t, stdin, args...)
	if extensionOf(args) != "txt" {
		return stdout, code
	}
	return stdout + stderr, code
}

// runStreams is runCommand with the two streams apart.
func runStreams(t *testing.T, stdin []byte, args ...string) (stdout, stderr string, code exitCode) {
	t.Helper()
	var out, errs bytes.Buffer
	root := newRootCommand()
	root.SetArgs(append([]string{}, args...))
	root.SetIn(bytes.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&errs)
	code = exitStatus(root.ExecuteContext(t.Context()), &errs)
	return out.String(), errs.String(), code
}

// readStdin gives what a case has on standard input; nothing without a file.
func readStdin(t *testing.T, file string) []byte {
	t.Helper()
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// extensionOf is how a file is called that holds what -o asks for.
func extensionOf(args []string) string {
	at := slices.Index(args, "-o")
	if at < 0 || args[at+1] == "text" {
		return "txt"
	}
	return cmp.Or(map[string]string{"junit": "xml", "xml": "txt"}[args[at+1]], args[at+1])
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		t.Fatalf("there is no %s: run go test ./cmd/penstock -update", filepath.Join(checkDir, file))
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
