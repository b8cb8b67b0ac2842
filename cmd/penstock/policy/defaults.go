package policy

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
)

// readSchema reads a template's schema of parameters; nil if it has none.
func readSchema(raw json.RawMessage) (*structuralschema.Structural, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var given apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&given, &internal, nil); err != nil {
		return nil, err
	}
	return structuralschema.NewStructural(&internal)
}

// withDefaults adds to a constraint's parameters the defaults of its template's
// schema. In a cluster with Gatekeeper, where that schema is a part of the
// constraint's CustomResourceDefinition, the API server writes them; as there, what
// is below a member that is left out has none, unless the member has a default.
func withDefaults(parameters json.RawMessage, schema *structuralschema.Structural) (json.RawMessage, error) {
	if schema == nil {
		return parameters, nil
	}
	const member = "parameters"
	spec := map[string]any{}
	if len(parameters) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(parameters))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			return nil, fmt.Errorf("spec.parameters: %w", err)
		}
		spec[member] = value
	}
	defaulting.Default(spec, &structuralschema.Structural{Properties: map[string]structuralschema.Structural{member: *schema}})
	value, given := spec[member]
	if !given {
		return nil, nil
	}
	return json.Marshal(value)
}
