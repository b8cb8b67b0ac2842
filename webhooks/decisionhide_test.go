package webhooks_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/webhooks"
)

// TestDecisionLogHidesWhatRulesQuote has rules print values in every way that there
// is to, and looks for them in all that is logged.
func TestDecisionLogHidesWhatRulesQuote(t *testing.T) {
	values := map[string]string{
		"plain":                "SECRETplain",
		"quotes and lines":     "SECRET\"a\nb\tc\\d\r\u001b",
		"lines":                "SECRETaaaaaaaaaaaaa\nSECRETbbbbbbbbbbbbb\n",
		"HTML":                 "SECRET<&>a",
		"line separators":      "SECRETé\u2028a\u2029",
		"direction of text":    "SECRET\u202ea",
		"beyond ASCII":         "SECRETé𝄞",
		"a file's text":        "SECRETa\n",
		"longer than messages": "SECRET" + strings.Repeat("x", 5000),
		"long, to be quoted":   "SECRET" + strings.Repeat("\"\n", 5000),
		"holds the mark":       "SECRET…a…" + strings.Repeat("x", 5000),
	}
	bodies := map[string]string{
		"the value":            `sprintf("%s", [variable.value])`,
		"quoted":               `sprintf("%q", [variable.value])`,
		"within an object":     `sprintf("is %v here", [variable])`,
		"as JSON":              `json.marshal(variable)`,
		"as JSON within JSON":  `json.marshal({"a": json.marshal(variable)})`,
		"as JSON in an object": `sprintf("%v", [[json.marshal(variable)]])`,
		"without space":        `trim_space(variable.value)`,
		"cut in the middle":    `sprintf("%2030s%s", ["", variable.value])`,
		"in one line":          `concat(" ", [word | some word in regex.split("[ \\n\\t\\r]+", variable.value)])`,
		"of an argument":       `concat(" ", input.object.spec.containers[0].args)`,
		"line by line":         `concat(" | ", split(variable.value, "\n"))`,
	}
	values["short lines"], values["a tab"], values["blanks"] = "user admin\nSECRETaa\n", "SECRETa\tSECRETb", "SECRETa  SECRETb"
	for valueName, value := range values {
		for bodyName, body := range bodies {
			if bodyName == "line by line" && valueName != "lines" {
				continue // lines may be too short
			}
			t.Run(valueName+", "+bodyName, func(t *testing.T) {
				rule := policyOn("p", "", "Pod", `some variable in input.object.spec.containers[0].env; said := `+body+
					`; msg := said; field := sprintf("spec.containers[%s]", [said])`)
				warning := policyOn("w", "", "Pod", `some variable in input.object.spec.containers[0].env; msg := `+body+`; field := "spec"`, warns)
				written, err := json.Marshal(value)
				if err != nil {
					t.Fatal(err)
				}
				events := logOf(t, webhooks.DecisionLogOptions{Mask: maskOf(t, ".*")}, []*v1.WorkloadPolicy{rule, warning}, podRequest(t, fmt.Sprintf(
					`{"metadata":{"name":"a"},"spec":{"containers":[{"args":[%[1]s],"env":[{"name":"A","value":%[1]s}]}]}}`, written)))
				if len(events) != 1 {
					t.Fatalf("got %d events", len(events))
				}
				if result := events[0]["result"].(map[string]any); result["violations"] == nil || result["warnings"] == nil {
					t.Fatalf("got %v", events[0])
				}
				if whole, _ := json.Marshal(events[0]); strings.Contains(string(whole), "SECRET") {
					t.Errorf("a masked value is in %s", whole)
				}
			})
		}
	}
}

// TestDecisionLogOfLargeValues holds what masks to time that grows with an object,
// and not with its square: decisions are written one after the other.
func TestDecisionLogOfLargeValues(t *testing.T) {
	value := "SECRET" + strings.Repeat("x", 1<<20)
	rule := policyOn("p", "", "Pod", `msg := sprintf("%s", [input.object.spec.containers[0].env[0].value]); field := "spec"`)
	start := time.Now()
	events := logOf(t, webhooks.DecisionLogOptions{Mask: maskOf(t, ".*")}, []*v1.WorkloadPolicy{rule}, podRequest(t, fmt.Sprintf(
		`{"metadata":{"name":"a"},"spec":{"containers":[{"args":["--a=%[1]s"],"env":[{"name":"A","value":"%[1]s"}]}]}}`, value)))
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
	if whole, _ := json.Marshal(events); len(events) != 1 || strings.Contains(string(whole), "SECRET") {
		t.Errorf("got %d events, or a masked value in them", len(events))
	}
}
