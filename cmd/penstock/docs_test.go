package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
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

// TestDocumentedPolicies holds every policy in the documentation to what a
// cluster with the manager's own defaults holds it to, Rego included.
func TestDocumentedPolicies(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocksOf(string(text)) {
			for i, document := range regexp.MustCompile(`(?m)^---$`).Split(block, -1) {
				if !regexp.MustCompile(`(?m)^kind: WorkloadPolicy$`).MatchString(document) {
					continue
				}
				count++
				path := filepath.Join(t.TempDir(), fmt.Sprintf("%d-%d.yaml", count, i))
				if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
					t.Fatal(err)
				}
				if out, code := runCheck(t, nil, "-f", path, "--policies", noPolicies); code != 0 || !strings.Contains(out, " admitted\n") {
					t.Errorf("%s has a policy that is refused:\n%s\n%s", file, document, out)
				}
			}
		}
	}
	if mentioned := 3; count < mentioned {
		t.Errorf("found %d policies in the documentation, want at least %d", count, mentioned)
	}
}

// TestDocumentedRights holds what docs/operations.md says that Penstock may list
// and watch to the role that it is given.
func TestDocumentedRights(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "It may list and watch, by API group,\n\n")
	if !found {
		t.Fatal("the docs do not say what Penstock may list and watch")
	}
	block, _, _ := strings.Cut(after, "\n\n")
	got := map[string][]string{}
	for line := range strings.Lines(block) {
		words := strings.Fields(line)
		got[strings.Replace(words[0], "core", "", 1)] = words[1:]
	}
	manifest, err := os.ReadFile("../../config/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if role.Kind != "ClusterRole" || !slices.Contains(rule.Verbs, "list") || !slices.Contains(rule.Verbs, "watch") {
				continue
			}
			for _, group := range rule.APIGroups {
				want[group] = append(want[group], rule.Resources...)
				slices.Sort(want[group])
			}
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("docs/operations.md and config/rbac/role.yaml differ (-manifest +docs):\n%s", diff)
	}
}

// blocksOf gives the blocks of code of a text in Markdown: those in fences, and
// those that are indented.
func blocksOf(text string) []string {
	var blocks []string
	var block strings.Builder
	var fence bool
	finish := func() {
		if block.Len() > 0 {
			blocks = append(blocks, block.String())
		}
		block.Reset()
	}
	for line := range strings.Lines(text) {
		switch code, indented := strings.CutPrefix(line, "    "); {
		case strings.HasPrefix(line, "```"):
			finish()
			fence = !fence
		case fence:
			block.WriteString(line)
		case indented:
			block.WriteString(code)
		case strings.TrimSpace(line) == "" && block.Len() > 0:
			block.WriteString(line)
		default:
			finish()
		}
	}
	finish()
	return blocks
}

func TestBlocksOfDocumentation(t *testing.T) {
	got := blocksOf("text\n\n    a: b\n\n      c: d\n\ntext\n\n```yaml\ne: f\n\ng: h\n```\ntext\n")
	if diff := gocmp.Diff([]string{"a: b\n\n  c: d\n\n", "e: f\n\ng: h\n"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
