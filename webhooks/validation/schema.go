package validation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// Schema prunes, defaults and validates the untyped content of one version of
// a custom resource, as the API server does and in its words. A request made
// in another version is not held to this one's schema by the API server, and
// an offline check has no API server at all.
//
// Content is what k8s.io/apimachinery/pkg/util/json decodes: whole numbers are
// int64. Building a Schema compiles its CEL; build it once. It may be used by
// several goroutines.
type Schema struct {
	kind       schema.GroupVersionKind
	namespaced bool
	// hasStatus and scalePath say which subresources the version has.
	hasStatus  bool
	scalePath  string
	structural *structuralschema.Structural
	shape      *shape
	// embeds says whether objects with metadata of their own are embedded.
	embeds bool
	values schemavalidation.SchemaValidator
	rules  *cel.Validator
}

// NewSchema builds the schema of one version of a CustomResourceDefinition. It
// is an error if the version is absent, has no schema, or one that is not
// structural.
func NewSchema(crd *apiextensionsv1.CustomResourceDefinition, version string) (*Schema, error) {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name == version {
			return newSchema(crd, &crd.Spec.Versions[i])
		}
	}
	return nil, fmt.Errorf("failed to find version %s in CustomResourceDefinition %s", version, crd.Name)
}

// newSchema follows the API server's getOrCreateServingInfoFor
// (apiextensions-apiserver, pkg/apiserver/customresource_handler.go).
func newSchema(crd *apiextensionsv1.CustomResourceDefinition, version *apiextensionsv1.CustomResourceDefinitionVersion) (*Schema, error) {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("failed to read the schema of %s %s: it has none", crd.Name, version.Name)
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		version.Schema.OpenAPIV3Schema, props, nil); err != nil {
		return nil, fmt.Errorf("failed to convert the schema of %s %s: %w", crd.Name, version.Name, err)
	}
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		return nil, fmt.Errorf("failed to read the schema of %s %s as structural: %w", crd.Name, version.Name, err)
	}
	structural = structural.DeepCopy()
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, fmt.Errorf("failed to prune the defaults of %s %s: %w", crd.Name, version.Name, err)
	}
	values, _, err := schemavalidation.NewSchemaValidator(props)
	if err != nil {
		return nil, fmt.Errorf("failed to build the validator of %s %s: %w", crd.Name, version.Name, err)
	}
	built := &Schema{
		kind:       schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind},
		namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		structural: structural,
		shape:      newShape(structural),
		embeds:     embedsResources(structural),
		values:     values,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}
	if subresources := version.Subresources; subresources != nil {
		built.hasStatus = subresources.Status != nil
		if subresources.Scale != nil {
			built.scalePath = subresources.Scale.SpecReplicasPath
		}
	}
	return built, nil
}

// Prune removes from obj what the schema does not know and returns the paths
// of what it removed, sorted, in the form spec.roles[0].template.imge.
func (s *Schema) Prune(obj map[string]any) []string {
	return pruning.PruneWithOptions(obj, s.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// Default removes nulls where the schema allows none and fills in the schema's
// defaults.
func (s *Schema) Default(obj map[string]any) {
	s.shape.fill(obj)
}

// Validate judges obj, which is pruned and defaulted, by the schema's values,
// list types and CEL rules. On create old is nil; on update rules may compare
// with it, and what the API server tolerates because it has not changed is
// tolerated. Where status is a subresource it is not judged, as it does not
// come with the request. Metadata is left to ValidateMeta. Neither argument is
// changed.
func (s *Schema) Validate(ctx context.Context, old, obj map[string]any) field.ErrorList {
	if errs := s.validateKind(obj); len(errs) > 0 {
		return errs
	}
	obj = s.withStatusOf(old, obj)
	correlated := s.correlate(old, obj)
	errs := s.validateValues(old, obj, correlated)
	errs = append(errs, s.validateScale(obj)...)
	if s.embeds {
		errs = append(errs, objectmeta.Validate(ctx, nil, obj, s.structural, false)...)
	}
	errs = append(errs, s.Repeated(old, obj)...)
	return append(errs, s.validateRules(ctx, old, obj, correlated, errs)...)
}

// correlate pairs the fields of an update with those of the old object, for
// the API server's ratcheting.
func (s *Schema) correlate(old, obj map[string]any) *common.CorrelatedObject {
	if old == nil {
		return nil
	}
	return common.NewCorrelatedObject(obj, old, &model.Structural{Structural: s.structural})
}

func (s *Schema) validateValues(old, obj map[string]any, correlated *common.CorrelatedObject) field.ErrorList {
	// An old status is not judged: the API server tolerates what is unchanged.
	except := ""
	if s.hasStatus {
		except = "status"
	}
	if !s.shape.opaque && s.shape.conformsMap(obj, except) {
		return nil
	}
	var errs field.ErrorList
	if old == nil {
		errs = schemavalidation.ValidateCustomResource(nil, obj, s.values)
	} else {
		errs = schemavalidation.ValidateCustomResourceUpdate(nil, obj, old, s.values, schemavalidation.WithRatcheting(correlated))
	}
	// The API server's own order is that of map iteration.
	slices.SortStableFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Detail, b.Detail))
	})
	return errs
}

// excuse is what the API server says when it does not evaluate rules.
const excuse = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"

// WithoutExcuse leaves out the fault that says only that there are others, of
// which nobody can mend anything.
func WithoutExcuse(errs field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(errs, func(err *field.Error) bool { return err.Detail == excuse })
}

// validateRules evaluates the CEL rules, unless earlier faults forbid it.
func (s *Schema) validateRules(ctx context.Context, old, obj map[string]any,
	correlated *common.CorrelatedObject, earlier field.ErrorList) field.ErrorList {
	if s.rules == nil {
		return nil
	}
	if blocksRules(earlier) {
		return field.ErrorList{field.Invalid(nil, nil, excuse)}
	}
	var previous any
	var options []cel.Option
	if old != nil {
		previous = old
		options = append(options, cel.WithRatcheting(correlated))
	}
	errs, _ := s.rules.Validate(ctx, nil, s.structural, obj, previous, celconfig.RuntimeCELCostBudget, options...)
	return errs
}

// withStatusOf returns obj with the status that the API server would judge: it
// resets status before it validates a write to the object itself.
func (s *Schema) withStatusOf(old, obj map[string]any) map[string]any {
	if !s.hasStatus {
		return obj
	}
	was, had := old["status"]
	if _, has := obj["status"]; !has && !had {
		return obj
	}
	obj = maps.Clone(obj)
	if had {
		obj["status"] = was
	} else {
		delete(obj, "status")
	}
	return obj
}

func (s *Schema) validateKind(obj map[string]any) field.ErrorList {
	var errs field.ErrorList
	if kind, _ := obj["kind"].(string); kind != s.kind.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), kind, fmt.Sprintf("must be %v", s.kind.Kind)))
	}
	if version, _ := obj["apiVersion"].(string); version != s.kind.GroupVersion().String() {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), version, fmt.Sprintf("must be %v", s.kind.GroupVersion())))
	}
	return errs
}

// validateScale judges the one number that the scale subresource writes.
func (s *Schema) validateScale(obj map[string]any) field.ErrorList {
	if s.scalePath == "" {
		return nil
	}
	path := field.NewPath(s.scalePath)
	count, _, err := unstructured.NestedInt64(obj, strings.Split(strings.TrimPrefix(s.scalePath, "."), ".")...)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, count, err.Error())}
	case count < 0:
		return field.ErrorList{field.Invalid(path, count, "should be a non-negative integer")}
	case count > math.MaxInt32:
		return field.ErrorList{field.Invalid(path, count, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32))}
	}
	return nil
}

// blocksRules reports faults after which CEL could meet values of types it was
// not compiled for (hasBlockingErr in the API server's registry/customresource).
func blocksRules(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong,
			field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

func embedsResources(node *structuralschema.Structural) bool {
	if node == nil {
		return false
	}
	for _, property := range node.Properties {
		if embedsResources(&property) {
			return true
		}
	}
	additional := node.AdditionalProperties != nil && embedsResources(node.AdditionalProperties.Structural)
	return node.XEmbeddedResource || additional || embedsResources(node.Items)
}
