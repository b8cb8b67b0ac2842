package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/cmd/penstock/check"
)

const greedyPod = `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team}, spec: {
  containers: [{name: a, image: b, resources: {requests: {nvidia.com/gpu: 8}, limits: {nvidia.com/gpu: 9, nvidia.com/gpus: 1}}}]}}
`

// explained are the explanations in what check says of an object.
func explained(t *testing.T, stdin string, args ...string) []*check.Explanation {
	t.Helper()
	stdout, stderr, _ := runStreams(t, []byte(stdin), append([]string{"check", "-f", "-", "--explain", "-o", "json"}, args...)...)
	var report check.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	var found []*check.Explanation
	for _, result := range report.Results {
		for _, fault := range append(result.Faults, result.Warnings...) {
			if fault.Explanation != nil {
				found = append(found, fault.Explanation)
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("nothing is explained:\n%s%s", stdout, stderr)
	}
	return found
}

// What an explanation names is there, and says what it says it does.
func holdsWhatItNames(t *testing.T, root string, one *check.Explanation, says string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, one.File))
	if err != nil {
		t.Error(err)
		return
	}
	lines := strings.Split(string(text), "\n")
	if one.Line < 1 || one.Line > len(lines) || !strings.Contains(lines[one.Line-1], says) {
		t.Errorf("line %d of %s does not say %s", one.Line, one.File, says)
	}
}

// A twin of the library has no file of its own: its rule is that of the other.
func TestCheckExplainsTwins(t *testing.T) {
	found := explained(t, greedyPod)
	if len(found) < 3 {
		t.Errorf("only %d policies find anything", len(found))
	}
	for _, one := range found {
		holdsWhatItNames(t, filepath.Join("..", ".."), one, one.Text)
	}
	stdout, _, _ := runStreams(t, []byte(greedyPod), "check", "-f", "-", "--explain", "-o", "sarif")
	if strings.Contains(stdout, "-pods/policy.rego") || strings.Contains(stdout, "relatedLocations") {
		t.Error("SARIF names a file that the repository does not have")
	}
}

// A policy's rule is where its file has it, however that writes it.
func TestCheckExplainsFiles(t *testing.T) {
	const head = "apiVersion: penstock.dev/v1\nkind: WorkloadPolicy\nmetadata: {name: a}\nspec:\n  failurePolicy: Ignore\n  match: {resources: [{kinds: [Pod]}]}\n"
	const rule = `violation contains "no" if input.object.kind == "Pod"`
	tests := map[string]struct {
		text string
		line int
		says string
	}{
		"a block":                {text: head + "  rego: |\n    package a\n\n    # why\n    " + rule + "\n", line: 11, says: rule},
		"a block without an end": {text: head + "  rego: |-\n    package a\n    " + rule + "\n", line: 9, says: rule},
		"a block that begins late": {
			text: head + "  rego: |\n\n    package a\n    " + rule + "\n", line: 10, says: rule,
		},
		"the second document": {
			text: "# of the team\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n---\n" + head + "  rego: |\n    package a\n    " + rule + "\n", line: 15, says: rule,
		},
		"an item of a list": {
			text: "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(head, "\n", "\n  ") + "  rego: |\n      package a\n      " + rule + "\n", line: 12, says: rule,
		},
		"a text in quotes": {text: head + "  rego: \"package a\\n" + strings.ReplaceAll(rule, `"`, `\"`) + "\"\n", line: 7, says: "rego:"},
		"a folded block":   {text: head + "  rego: >\n    package a\n\n    " + rule + "\n", line: 7, says: "rego:"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.WriteFile("policy.yaml", []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			one := explained(t, greedyPod, "--policies", "policy.yaml")[0]
			if one.File != "policy.yaml" || one.Line != tc.line {
				t.Errorf("got %s:%d, want policy.yaml:%d", one.File, one.Line, tc.line)
			}
			holdsWhatItNames(t, ".", one, tc.says)
			text, _, _ := runStreams(t, []byte(greedyPod), "check", "-f", "-", "--explain", "--policies", "policy.yaml")
			if want := "    policy.yaml:" + strconv.Itoa(tc.line) + ": "; !strings.Contains(text, want) {
				t.Errorf("want %q in\n%s", want, text)
			}
			sarif, _, _ := runStreams(t, []byte(greedyPod), "check", "-f", "-", "--explain", "-o", "sarif", "--policies", "policy.yaml")
			if got := relatedLine(t, sarif); got != tc.line {
				t.Errorf("SARIF relates to line %d, want %d", got, tc.line)
			}
		})
	}
}

// relatedLine is the line of the only related location of a log.
func relatedLine(t *testing.T, sarif string) int {
	t.Helper()
	var log struct {
		Runs []struct {
			Results []struct {
				RelatedLocations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(sarif), &log); err != nil {
		t.Fatal(err)
	}
	related := log.Runs[0].Results[0].RelatedLocations
	if len(related) != 1 || related[0].PhysicalLocation.ArtifactLocation.URI != "policy.yaml" {
		t.Fatalf("got %v", related)
	}
	return related[0].PhysicalLocation.Region.StartLine
}
