package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedPolicyTest runs the example of docs/policies.md: its files, and
// what it says is written.
func TestDocumentedPolicyTest(t *testing.T) {
	text, err := os.ReadFile("../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	// A file is named at the end of the paragraph before its block.
	named := regexp.MustCompile("(?m)`(policies/[^`]+)`:\n\n((?:    .*\n|\n)+)")
	files := named.FindAllStringSubmatch(string(text), -1)
	if len(files) != 3 {
		t.Fatalf("the docs name %d files, want a policy, a test and cases", len(files))
	}
	var session string
	for _, file := range files {
		content := regexp.MustCompile("(?m)^    ").ReplaceAllString(file[2], "")
		content, session, _ = strings.Cut(content, "$ penstock ")
		if err := os.MkdirAll(filepath.Dir(file[1]), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file[1], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command, want, found := strings.Cut(session, "\n")
	if !found {
		t.Fatal("the docs do not show what the command says")
	}
	got, code := runCommand(t, nil, strings.Fields(command)...)
	if code != 0 || strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("exit code %d; penstock %s says\n%s\nand the docs\n%s", code, command, got, want)
	}
}
