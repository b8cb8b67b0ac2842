package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
)

// sarifObjects are the objects of SARIF 2.1.0 that penstock writes: what each
// may hold of what it is made of, with ! where the format requires it. A name
// that is an object's own is followed into it.
var sarifObjects = map[string]map[string]string{
	"log":           {"$schema": "string", "version!": "string", "runs!": "[]run"},
	"run":           {"tool!": "tool", "invocations": "[]invocation", "results": "[]result"},
	"tool":          {"driver!": "driver"},
	"driver":        {"name!": "string", "version": "string", "rules": "[]rule"},
	"rule":          {"id!": "string", "shortDescription": "text", "fullDescription": "text", "help": "text", "defaultConfiguration": "configuration"},
	"configuration": {"level": "level"},
	"text":          {"text!": "string"},
	"invocation":    {"executionSuccessful!": "bool", "toolExecutionNotifications": "[]notification"},
	"notification":  {"level": "level", "message!": "text", "locations": "[]location"},
	"result":        {"ruleId": "string", "ruleIndex": "number", "level": "level", "message!": "text", "locations": "[]location", "partialFingerprints": "strings"},
	"location":      {"physicalLocation": "physical", "logicalLocations": "[]logical"},
	"physical":      {"artifactLocation": "artifact", "region": "region"},
	"artifact":      {"uri": "uri"},
	"region":        {"startLine": "line"},
	"logical":       {"fullyQualifiedName": "string", "kind": "string"},
}

// TestSARIFIsValid holds a log over every manifest there is to the format.
func TestSARIFIsValid(t *testing.T) {
	t.Chdir(checkDir)
	text, code := runCheck(t, nil, "-f", ".", "-R", "-o", "sarif")
	if code != 2 {
		t.Errorf("exit code %d, want 2: some of it cannot be read", code)
	}
	var log map[string]any
	if err := json.Unmarshal([]byte(text), &log); err != nil {
		t.Fatal(err)
	}
	for _, fault := range sarifFaults("log", "log", log) {
		t.Error(fault)
	}
	if log["version"] != "2.1.0" {
		t.Errorf("version %v, want 2.1.0", log["version"])
	}
	run := log["runs"].([]any)[0].(map[string]any)
	rules := run["tool"].(map[string]any)["driver"].(map[string]any)["rules"].([]any)
	seen := map[any]bool{}
	for _, rule := range rules {
		id := rule.(map[string]any)["id"]
		if seen[id] {
			t.Errorf("two rules are called %v", id)
		}
		seen[id] = true
	}
	results := run["results"].([]any)
	found := map[any]bool{}
	for _, one := range results {
		result := one.(map[string]any)
		found[result["ruleId"]] = true
		if at := int(result["ruleIndex"].(float64)); at >= len(rules) || rules[at].(map[string]any)["id"] != result["ruleId"] {
			t.Errorf("rule %d is not %v", at, result["ruleId"])
		} else if id := result["ruleId"].(string); strings.HasPrefix(id, "penstock/") {
			// A policy may warn beside refusing; these do one thing.
			if level := rules[at].(map[string]any)["defaultConfiguration"].(map[string]any)["level"]; level != result["level"] {
				t.Errorf("rule %s is of level %v, and its result of %v", id, level, result["level"])
			}
		}
		checkPlace(t, result)
	}
	for _, rule := range []string{"penstock/decoding", "penstock/invalid", "penstock/unknown-kind", "penstock/advice", "penstock/note", "gpu-ceiling", "leader-role"} {
		if !found[rule] {
			t.Errorf("the log has no result of rule %s", rule)
		}
	}
	invocation := run["invocations"].([]any)[0].(map[string]any)
	if successful, says := invocation["executionSuccessful"].(bool); !says || successful {
		t.Error("what cannot be read is a success")
	}
}

// checkPlace requires that the line a result names holds the last member of the
// field it is about, where the file holds the field at all.
func checkPlace(t *testing.T, result map[string]any) {
	t.Helper()
	location := result["locations"].([]any)[0].(map[string]any)
	physical := location["physicalLocation"].(map[string]any)
	file := physical["artifactLocation"].(map[string]any)["uri"].(string)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
		return
	}
	lines := strings.Split(string(text), "\n")
	line := int(physical["region"].(map[string]any)["startLine"].(float64))
	if line > len(lines) {
		t.Errorf("%s has no line %d", file, line)
		return
	}
	name := location["logicalLocations"].([]any)[0].(map[string]any)["fullyQualifiedName"].(string)
	_, field, has := strings.Cut(name, ": ")
	last := strings.TrimRight(field[strings.LastIndexAny(field, ".[")+1:], "]")
	// A misspelt field is found where it is written, and nowhere else.
	if has && result["ruleId"] == "penstock/decoding" && !strings.Contains(lines[line-1], last) {
		t.Errorf("%s:%d does not hold %s: %s", file, line, field, lines[line-1])
	}
}

// sarifFaults are where a value is not what the format says of its type.
func sarifFaults(at, kind string, value any) []string {
	wrong := func(what string) []string { return []string{fmt.Sprintf("%s: %v is no %s", at, value, what)} }
	if element, is := strings.CutPrefix(kind, "[]"); is {
		list, ok := value.([]any)
		if !ok {
			return wrong("list")
		}
		var faults []string
		for i, one := range list {
			faults = append(faults, sarifFaults(fmt.Sprintf("%s[%d]", at, i), element, one)...)
		}
		return faults
	}
	members, isObject := sarifObjects[kind]
	if !isObject {
		if !isSarif(kind, value) {
			return wrong(kind)
		}
		return nil
	}
	object, ok := value.(map[string]any)
	if !ok {
		return wrong("object")
	}
	var faults []string
	for name := range members {
		if required, is := strings.CutSuffix(name, "!"); is && object[required] == nil {
			faults = append(faults, at+" has no "+required)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		of, optional := members[name]
		if !optional {
			var required bool
			if of, required = members[name+"!"]; !required {
				faults = append(faults, at+" may hold no "+name)
				continue
			}
		}
		faults = append(faults, sarifFaults(at+"."+name, of, object[name])...)
	}
	return faults
}

func isSarif(kind string, value any) bool {
	text, isText := value.(string)
	number, isNumber := value.(float64)
	switch kind {
	case "string":
		return isText && text != ""
	case "level":
		return slices.Contains([]string{"none", "note", "warning", "error"}, text)
	case "uri":
		parsed, err := url.Parse(text)
		return isText && err == nil && parsed.String() == text && !strings.Contains(text, `\`)
	case "line":
		return isNumber && number >= 1 && number == float64(int(number))
	case "number":
		return isNumber && number >= 0
	case "bool":
		_, is := value.(bool)
		return is
	case "strings":
		object, is := value.(map[string]any)
		for _, member := range object {
			_, text := member.(string)
			is = is && text
		}
		return is
	}
	return false
}
