package library_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies/library"
)

func isMarked(cell string) bool { return strings.TrimSpace(cell) != "" }

// TestDocsListThePolicies holds docs/library.md to one line for each policy,
// with its action, its parameters and which kinds it and its twin judge.
func TestDocsListThePolicies(t *testing.T) {
	text, err := os.ReadFile("../../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	twins := map[string]bool{}
	for _, policy := range loaded {
		if folder := library.Folder(policy.Name); folder != policy.Name {
			twins[folder] = true
		}
	}
	lines := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); len(cells) == 6 && !strings.Contains(line, "---") {
			lines[strings.TrimPrefix(cells[0], "| ")] = cells[1:]
		}
	}
	delete(lines, "policy")
	for _, policy := range loaded {
		if library.Folder(policy.Name) != policy.Name {
			continue
		}
		parameters := map[string]any{}
		if raw := policy.Spec.Parameters; raw != nil {
			if err := json.Unmarshal(raw.Raw, &parameters); err != nil {
				t.Fatal(err)
			}
		}
		cells, found := lines[policy.Name]
		if !found {
			t.Errorf("no line of docs/library.md is about %s", policy.Name)
			continue
		}
		delete(lines, policy.Name)
		if judges := slices.Contains(policy.Spec.Match.Resources[0].Kinds, v1.RayClusterKind); judges != isMarked(cells[0]) {
			t.Errorf("%s: the docs say of Ray %q", policy.Name, cells[0])
		}
		if isMarked(cells[1]) != twins[policy.Name] {
			t.Errorf("%s: the docs say of pods %q", policy.Name, cells[1])
		}
		if cells[2] != string(policy.Spec.Action) {
			t.Errorf("%s: the docs say %s, the policy %s", policy.Name, cells[2], policy.Spec.Action)
		}
		var named []string
		for _, name := range slices.Sorted(maps.Keys(parameters)) {
			named = append(named, fmt.Sprintf("`%s`", name))
		}
		listed := strings.Split(strings.TrimSpace(strings.TrimSuffix(cells[4], "|")), ", ")
		slices.Sort(listed)
		if got, want := strings.Join(listed, ", "), strings.Join(named, ", "); got != want {
			t.Errorf("%s: the docs list the parameters %s, the policy has %s", policy.Name, got, want)
		}
	}
	for name := range lines {
		t.Errorf("docs/library.md has a line about %s, which is no policy", name)
	}
}
