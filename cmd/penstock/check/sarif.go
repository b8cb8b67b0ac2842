package check

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
)

// A Tool is what a SARIF log says of who made it.
type Tool struct {
	Version string
	// Policies are in force; each is a rule.
	Policies []*penstockv1.WorkloadPolicy
}

const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

// ownRules are those of Penstock itself. Names of policies hold no slash.
var ownRules = []sarifRule{
	ownRule("decoding", "error", "The object can be decoded", "The API server does not decode it: a key is written twice, a field is unknown or has a value of a wrong type."),
	ownRule("invalid", "error", "The object has a meaning", "It breaks the schema of its kind, or an invariant without which it means nothing."),
	ownRule("unknown-kind", "error", "The kind is served", "No version that the cluster serves has this kind."),
	ownRule("advice", "warning", "Nothing is worth a warning", "It is admitted, and its author should know something of it."),
	ownRule("note", "note", "Nothing is worth a note", "It is admitted, and the cluster says nothing of it that a reader of the manifest may want to know."),
	ownRule("internal", "error", "The object could be judged", "Penstock failed to judge the object, which is a fault of Penstock."),
}

func ownRule(name, level, short, full string) sarifRule {
	return sarifRule{
		ID: "penstock/" + name, ShortDescription: sarifText{short}, FullDescription: sarifText{full},
		Help: sarifText{full}, DefaultConfiguration: sarifConfiguration{Level: level},
	}
}

// WriteSARIF writes the report as a log of SARIF 2.1.0, as code scanning takes
// it: a rule for each policy, a result for each fault, warning and note, and
// notifications for what could not be read and policies that were not evaluated.
// The rule that an explanation names is a related location, unless it is not one
// of the user's files.
func (r Report) WriteSARIF(w io.Writer, tool Tool) error {
	run := sarifRun{
		Tool:        sarifTool{Driver: sarifDriver{Name: "penstock", Version: tool.Version, Rules: rulesOf(tool.Policies)}},
		Invocations: []sarifInvocation{{ExecutionSuccessful: len(r.Errors) == 0, Notifications: r.notifications()}},
		Results:     []sarifResult{},
	}
	index := map[string]int{}
	for i, rule := range run.Tool.Driver.Rules {
		index[rule.ID] = i
	}
	for _, result := range r.Results {
		for _, fault := range result.Faults {
			run.Results = append(run.Results, result.sarif(fault, "error", index))
		}
		for _, warning := range result.Warnings {
			run.Results = append(run.Results, result.sarif(warning, "warning", index))
		}
		for _, note := range result.Notes {
			run.Results = append(run.Results, result.sarif(note, "note", index))
		}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{run}}); err != nil {
		return fmt.Errorf("failed to write the report: %w", err)
	}
	return nil
}

// rulesOf are Penstock's own rules and those of policies.
func rulesOf(policies []*penstockv1.WorkloadPolicy) []sarifRule {
	rules := append([]sarifRule{}, ownRules...)
	for _, policy := range policies {
		says := policy.Spec.Description
		if says == "" {
			says = "The policy " + policy.Name + " of the cluster, which has no description."
		}
		level := map[penstockv1.PolicyAction]string{penstockv1.ActionWarn: "warning", penstockv1.ActionAudit: "note"}[policy.Spec.Action]
		if level == "" {
			level = "error"
		}
		rules = append(rules, sarifRule{
			ID: policy.Name, ShortDescription: sarifText{"Policy " + policy.Name}, FullDescription: sarifText{says},
			Help:                 sarifText{fmt.Sprintf("%s The policy's own text: kubectl get workloadpolicy %s -o yaml", says, policy.Name)},
			DefaultConfiguration: sarifConfiguration{Level: level},
		})
	}
	return rules
}

// ruleOf names the rule that a finding is of.
func (r *Result) ruleOf(fault Fault, level string) string {
	switch {
	case fault.Policy != "":
		return fault.Policy
	case level == "warning":
		return "penstock/advice"
	case level == "note":
		return "penstock/note"
	}
	switch r.Reason {
	case metav1.StatusReasonBadRequest:
		return "penstock/decoding"
	case metav1.StatusReasonNotFound:
		return "penstock/unknown-kind"
	case metav1.StatusReasonInternalError, metav1.StatusReasonServiceUnavailable:
		return "penstock/internal"
	default:
		return "penstock/invalid"
	}
}

func (r *Result) sarif(fault Fault, level string, index map[string]int) sarifResult {
	rule, object := r.ruleOf(fault, level), r.Kind+" "+r.fullName()
	logical := sarifLogicalLocation{FullyQualifiedName: object, Kind: "object"}
	if fault.Field != "" {
		logical.FullyQualifiedName, logical.Kind = object+": "+fault.Field, "property"
	}
	identity := sha256.Sum256([]byte(strings.Join([]string{rule, r.File, r.APIVersion, object, fault.Field, fault.Message}, "\x00")))
	made := sarifResult{
		RuleID: rule, RuleIndex: index[rule], Level: level, Message: sarifText{object + ": " + fault.String()},
		Locations: []sarifLocation{{
			Physical: physicalLocation(r.File, fault.Line), Logical: []sarifLogicalLocation{logical},
		}},
		// Lines move and this does not.
		Fingerprints: map[string]string{"penstock/v1": hex.EncodeToString(identity[:16])},
	}
	if how := fault.Explanation; how != nil && !how.source.Shipped {
		made.Related = []sarifRelatedLocation{{Message: sarifText{how.Text}, Physical: physicalLocation(how.File, how.Line)}}
	}
	return made
}

func (r Report) notifications() []sarifNotification {
	notes := []sarifNotification{}
	for _, unreadable := range r.Errors {
		notes = append(notes, sarifNotification{
			Level: "error", Message: sarifText{unreadable.Error()},
			Locations: []sarifLocation{{Physical: physicalLocation(unreadable.File, unreadable.Line)}},
		})
	}
	for _, line := range r.notEvaluated() {
		notes = append(notes, sarifNotification{Level: "note", Message: sarifText{"Not evaluated: " + line}})
	}
	return notes
}

func physicalLocation(file string, line int) sarifPhysicalLocation {
	return sarifPhysicalLocation{Artifact: sarifArtifact{URI: uriOf(file)}, Region: sarifRegion{StartLine: max(line, 1)}}
}

// uriOf is a path as a URI, relative to where the command runs if the path is.
func uriOf(file string) string {
	if filepath.IsAbs(file) {
		return (&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String()
	}
	return (&url.URL{Path: filepath.ToSlash(filepath.Clean(file))}).String()
}

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool        sarifTool         `json:"tool"`
	Invocations []sarifInvocation `json:"invocations"`
	Results     []sarifResult     `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version,omitempty"`
	Rules   []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID                   string             `json:"id"`
	ShortDescription     sarifText          `json:"shortDescription"`
	FullDescription      sarifText          `json:"fullDescription"`
	Help                 sarifText          `json:"help"`
	DefaultConfiguration sarifConfiguration `json:"defaultConfiguration"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifConfiguration struct {
	Level string `json:"level"`
}

type sarifInvocation struct {
	ExecutionSuccessful bool                `json:"executionSuccessful"`
	Notifications       []sarifNotification `json:"toolExecutionNotifications"`
}

type sarifNotification struct {
	Level     string          `json:"level"`
	Message   sarifText       `json:"message"`
	Locations []sarifLocation `json:"locations,omitempty"`
}

type sarifResult struct {
	RuleID       string            `json:"ruleId"`
	RuleIndex    int               `json:"ruleIndex"`
	Level        string            `json:"level"`
	Message      sarifText         `json:"message"`
	Locations    []sarifLocation   `json:"locations"`
	Fingerprints map[string]string `json:"partialFingerprints"`
	// Related is the rule of the policy that says so.
	Related []sarifRelatedLocation `json:"relatedLocations,omitempty"`
}

type sarifRelatedLocation struct {
	Message  sarifText             `json:"message"`
	Physical sarifPhysicalLocation `json:"physicalLocation"`
}

type sarifLocation struct {
	Physical sarifPhysicalLocation  `json:"physicalLocation"`
	Logical  []sarifLogicalLocation `json:"logicalLocations,omitempty"`
}

type sarifPhysicalLocation struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   sarifRegion   `json:"region"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	StartLine int `json:"startLine"`
}

type sarifLogicalLocation struct {
	FullyQualifiedName string `json:"fullyQualifiedName"`
	Kind               string `json:"kind"`
}
