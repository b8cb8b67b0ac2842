package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/cmd/penstock/check"
)

// admissionTarget is the one target of a template that has to do with admission.
const admissionTarget = "admission.k8s.gatekeeper.sh"

// constraintTemplate is what is read of a ConstraintTemplate.
type constraintTemplate struct {
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		CRD struct {
			Spec struct {
				Names struct {
					Kind string `json:"kind"`
				} `json:"names"`
				Validation struct {
					OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
				} `json:"validation"`
			} `json:"spec"`
		} `json:"crd"`
		Targets []templateTarget `json:"targets"`
	} `json:"spec"`
}

type templateTarget struct {
	Target     string                       `json:"target"`
	Rego       string                       `json:"rego"`
	Libs       []string                     `json:"libs"`
	Operations []penstockv1.PolicyOperation `json:"operations"`
	Code       []struct {
		Engine string `json:"engine"`
		Source struct {
			Rego string   `json:"rego"`
			Libs []string `json:"libs"`
		} `json:"source"`
	} `json:"code"`
}

// template is the rule of a ConstraintTemplate.
type template struct {
	name        string
	kind        string
	description string
	rego        string
	libs        []string
	// at is the path of the members rego and libs.
	at         []string
	operations []penstockv1.PolicyOperation
	// parameters is their schema; nil if there is none, or one that no API server
	// takes, for which schemaFault is the reason.
	parameters  *structuralschema.Structural
	schemaFault error
	// inventory are the kinds that the template says it needs: for each need,
	// those of which one has to be there.
	inventory [][]penstockv1.InventoryKind
	used      bool
}

func readTemplate(raw []byte) (*template, error) {
	var from constraintTemplate
	if err := json.Unmarshal(raw, &from); err != nil {
		return nil, err
	}
	t := &template{
		name:        from.Metadata.Name,
		kind:        from.Spec.CRD.Spec.Names.Kind,
		description: from.Metadata.Annotations["description"],
	}
	if t.kind == "" {
		return nil, fmt.Errorf("template %s has no spec.crd.spec.names.kind", t.name)
	}
	at := slices.IndexFunc(from.Spec.Targets, func(one templateTarget) bool { return one.Target == admissionTarget })
	if at < 0 {
		return nil, fmt.Errorf("template %s has no target %s", t.name, admissionTarget)
	}
	target := from.Spec.Targets[at]
	t.rego, t.libs, t.operations = target.Rego, target.Libs, target.Operations
	if slices.Contains(t.operations, "*") {
		// Connections come by subresources that a match does not name.
		t.operations = []penstockv1.PolicyOperation{penstockv1.OperationCreate, penstockv1.OperationUpdate, penstockv1.OperationDelete}
	}
	t.at = []string{"spec", "targets", strconv.Itoa(at)}
	for i, code := range target.Code {
		if code.Engine == "Rego" {
			t.rego, t.libs = code.Source.Rego, code.Source.Libs
			t.at = []string{"spec", "targets", strconv.Itoa(at), "code", strconv.Itoa(i), "source"}
		}
	}
	if t.rego == "" {
		return nil, fmt.Errorf("template %s has no Rego: rules in CEL cannot be imported", t.name)
	}
	t.rego = withoutVerdicts(shown(t.rego))
	for i, lib := range t.libs {
		t.libs[i] = shown(lib)
	}
	t.parameters, t.schemaFault = readSchema(from.Spec.CRD.Spec.Validation.OpenAPIV3Schema)
	if needs := from.Metadata.Annotations["metadata.gatekeeper.sh/requires-sync-data"]; needs != "" {
		var err error
		if t.inventory, err = readNeeds(needs); err != nil {
			return nil, fmt.Errorf("template %s: annotation metadata.gatekeeper.sh/requires-sync-data: %w", t.name, err)
		}
	}
	return t, nil
}

// sourceOfTemplate gives the name of the template in a file, and where its Rego
// is written.
func sourceOfTemplate(file string) (string, check.Source) {
	objects, _ := check.Load([]string{file}, false, nil)
	for _, object := range objects {
		found, err := readTemplate(object.JSON)
		if err != nil {
			continue
		}
		source := object.TextSource(append(slices.Clone(found.at), "rego")...)
		for i := range found.libs {
			source.Libs = append(source.Libs, object.TextSource(append(slices.Clone(found.at), "libs", strconv.Itoa(i))...))
		}
		return found.name, source
	}
	return file, check.Source{File: file, Before: -1}
}

// readNeeds reads the kinds of the annotation requires-sync-data: a list of
// needs, each a list of alternatives. The JSON is often quoted as a whole.
func readNeeds(text string) ([][]penstockv1.InventoryKind, error) {
	text = strings.Trim(strings.TrimSpace(text), `"`)
	var needs [][]struct {
		Groups   []string `json:"groups"`
		Versions []string `json:"versions"`
		Kinds    []string `json:"kinds"`
	}
	if err := json.Unmarshal([]byte(text), &needs); err != nil {
		return nil, err
	}
	all := make([][]penstockv1.InventoryKind, len(needs))
	for i, need := range needs {
		for _, one := range need {
			for _, group := range one.Groups {
				for _, version := range one.Versions {
					for _, kind := range one.Kinds {
						all[i] = append(all[i], inventoryKind(group, version, kind))
					}
				}
			}
		}
	}
	return all, nil
}

func inventoryKind(group, version, kind string) penstockv1.InventoryKind {
	apiVersion := version
	if group != "" {
		apiVersion = group + "/" + version
	}
	return penstockv1.InventoryKind{APIVersion: apiVersion, Kind: kind}
}

// shown is a text that YAML can show as a block: indented by spaces, and
// without spaces at the ends of lines.
func shown(text string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		code := strings.TrimLeft(line, "\t")
		lines.WriteString(strings.Repeat("  ", len(line)-len(code)))
		lines.WriteString(strings.TrimRight(code, " \t\r\n"))
		lines.WriteByte('\n')
	}
	return lines.String()
}
