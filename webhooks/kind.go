package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// typed is a kind whose defaults and invariants are functions over its Go type.
type typed[T any] struct {
	groupKind schema.GroupKind
	// schema is that of v1. The API server does not hold requests made in
	// other versions to it.
	schema *validation.Schema
	// spokes are the schemas of the other versions, by name.
	spokes   map[string]*validation.Schema
	defaults func(*T)
	// inherit takes over from the stored object what an update leaves to somebody
	// else; nil for nothing.
	inherit  func(old, object *T)
	validate func(ctx context.Context, old, object *T) field.ErrorList
	// warn gives the lines that tell the author what an object that is admitted
	// means; nil for none.
	warn func(ctx context.Context, author authenticationv1.UserInfo, old, object *T) []string
	// advise gives what the author should know of the fields of an object that
	// is admitted, in v1 paths; nil for nothing.
	advise func(ctx context.Context, old, object *T) field.ErrorList
	// permit gives what keeps the author of a request from making it; nil where
	// the API server alone decides that. No old fault excuses it.
	permit   func(ctx context.Context, author authenticationv1.UserInfo, old, object *T) (field.ErrorList, error)
	policies bool
	// nulls says that a null in the spec means something.
	nulls bool
}

// pure makes the invariants of a kind that are a matter of a moment what a typed
// kind asks.
func pure[T any](validate func(old, object *T) field.ErrorList) func(context.Context, *T, *T) field.ErrorList {
	return func(_ context.Context, old, object *T) field.ErrorList { return validate(old, object) }
}

// newSchemas gives the schemas of v1 and of the other versions of a kind.
func newSchemas(kind schema.GroupKind) (*validation.Schema, map[string]*validation.Schema, error) {
	schemas, err := validation.Schemas(kind)
	if err != nil {
		return nil, nil, err
	}
	hub := schemas[v1.GroupVersion.Version]
	if hub == nil {
		return nil, nil, fmt.Errorf("failed to find version %s of %s", v1.GroupVersion.Version, kind)
	}
	delete(schemas, v1.GroupVersion.Version)
	return hub, schemas, nil
}

func (k *typed[T]) judged() bool { return k.policies }

func (k *typed[T]) warnings(ctx context.Context, request *admissionv1.AdmissionRequest) []fault {
	if k.warn == nil && k.advise == nil {
		return nil
	}
	object, old := k.typed(request)
	if object == nil {
		return nil
	}
	var found []fault
	// Of an upstream object another controller makes something.
	if k.advise != nil && requestKind(request).Group == v1.GroupName {
		k.defaults(object)
		if old != nil {
			k.defaults(old)
		}
		for _, line := range k.advise(ctx, old, object) {
			found = append(found, fault{field: line.Field, message: line.Detail})
		}
	}
	if k.warn == nil {
		return found
	}
	for _, line := range k.warn(ctx, request.UserInfo, old, object) {
		found = append(found, fault{message: line})
	}
	return found
}

// typed gives the objects of a request as their type; nil for what is not there
// or does not decode.
func (k *typed[T]) typed(request *admissionv1.AdmissionRequest) (object, old *T) {
	if !isAbsent(request.OldObject.Raw) {
		old = decodeAs[T](request.OldObject.Raw)
	}
	return decodeAs[T](request.Object.Raw), old
}

// patch writes the defaults of v1's schema, which the API server writes for
// requests made in v1 alone, and those of the kind. An update that comes to
// what is stored already is made to change nothing at all. It gives faults
// instead of what the API server would say first, and worse.
func (k *typed[T]) patch(request *admissionv1.AdmissionRequest) (patch, []fault, error) {
	content, err := decodeContent(request.Object.Raw)
	if err != nil {
		return nil, nil, err
	}
	repeated, err := k.repeated(request, content)
	if err != nil || len(repeated) > 0 {
		return nil, toFaults(repeated), err
	}
	operations, err := k.patchOf(request, content)
	return operations, nil, err
}

// repeated finds what a list has twice before the API server does. It looks at
// no more than the schema of the request's own version: the rest is told with
// all other faults.
func (k *typed[T]) repeated(request *admissionv1.AdmissionRequest, content map[string]any) (field.ErrorList, error) {
	repeated := k.schema.Repeated(nil, content)
	if len(repeated) > 0 && !isAbsent(request.OldObject.Raw) {
		old, err := decodeContent(request.OldObject.Raw)
		if err != nil {
			return nil, err
		}
		repeated = k.schema.Repeated(old, content)
	}
	if len(repeated) == 0 {
		return nil, nil
	}
	made := requestKind(request)
	if own, ok := conversion.Upstream(made); ok {
		made = own
	}
	spoke, written := k.spokes[made.Version], writtenPaths(request)
	return slices.DeleteFunc(repeated, func(err *field.Error) bool {
		return err.Type != field.ErrorTypeDuplicate || spoke != nil && !spoke.TellsApart(written(err.Field))
	}), nil
}

func (k *typed[T]) patchOf(request *admissionv1.AdmissionRequest, content map[string]any) (patch, error) {
	before, err := json.Marshal(content["spec"])
	if err != nil {
		return nil, fmt.Errorf("failed to write the spec: %w", err)
	}
	if !k.nulls {
		dropNulls(content["spec"])
	}
	writeFractions(content["spec"])
	var old *T
	if request.Operation == admissionv1.Update {
		old = decodeAs[T](request.OldObject.Raw)
	}
	defaulted, err := k.defaulted(content, madeInHub(request), old)
	if err != nil || defaulted == nil {
		return nil, err
	}
	after, err := json.Marshal(defaulted["spec"])
	if err != nil {
		return nil, fmt.Errorf("failed to write the spec: %w", err)
	}
	var operations patch
	if string(before) != string(after) {
		operations = append(operations, operation{Op: "add", Path: "/spec", Value: json.RawMessage(after)})
	}
	if request.Operation == admissionv1.Update {
		old, err := k.comparable(request.OldObject.Raw)
		if err != nil {
			return nil, err
		}
		if owners := ownersToKeep(old, defaulted); owners != nil {
			operations = append(operations, operation{Op: "replace", Path: "/metadata/managedFields", Value: owners})
		}
	}
	return operations, nil
}

// defaulted gives content with every default, or nil where it does not decode:
// then the API server or validation will say why, and a patch could only hide it.
// old is the stored object of an update, or nil.
func (k *typed[T]) defaulted(content map[string]any, schemaApplied bool, old *T) (map[string]any, error) {
	if !schemaApplied {
		content = runtime.DeepCopyJSON(content)
		k.schema.Default(content)
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("failed to write the object: %w", err)
	}
	object := decodeAs[T](raw)
	if object == nil {
		return nil, nil
	}
	before, err := toContent(object)
	if err != nil {
		return nil, err
	}
	if old != nil && k.inherit != nil {
		k.inherit(old, object)
	}
	k.defaults(object)
	after, err := toContent(object)
	if err != nil {
		return nil, err
	}
	merged := merge(content["spec"], before["spec"], after["spec"])
	defaulted := maps.Clone(content)
	if merged != nil {
		defaulted["spec"] = merged
	}
	return defaulted, nil
}

func toContent(object any) (map[string]any, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("failed to write the object: %w", err)
	}
	return decodeContent(raw)
}

// faults are what breaks v1's schema, for requests that the API server does
// not hold to it, and the invariants of the kind. On update, what was stored
// already and has not changed is tolerated.
func (k *typed[T]) faults(ctx context.Context, request *admissionv1.AdmissionRequest) ([]fault, error) {
	errs, err := k.remaining(ctx, request)
	if err != nil {
		return nil, err
	}
	if requestKind(request).Group != v1.GroupName {
		if errs, _, err = k.apart(ctx, request, errs); err != nil {
			return nil, err
		}
	}
	forbidden, err := k.forbidden(ctx, request)
	if err != nil {
		return nil, err
	}
	return toFaults(append(validation.Explain(validation.Distinct(errs)), forbidden...)), nil
}

// forbidden are the faults of the author rather than of the object.
func (k *typed[T]) forbidden(ctx context.Context, request *admissionv1.AdmissionRequest) (field.ErrorList, error) {
	if k.permit == nil {
		return nil, nil
	}
	object, old := k.typed(request)
	if object == nil {
		// What does not decode is refused as it is.
		return nil, nil
	}
	return k.permit(ctx, request.UserInfo, old, object)
}

func (k *typed[T]) errors(ctx context.Context, oldRaw, raw []byte, schemaApplied bool) (field.ErrorList, error) {
	errs := tooMuchLost(raw)
	if !schemaApplied {
		content, err := decodeContent(raw)
		if err != nil {
			return nil, err
		}
		errs = append(errs, k.schema.Strict(content)...)
		var old map[string]any
		if len(oldRaw) > 0 {
			if old, err = decodeContent(oldRaw); err != nil {
				return nil, err
			}
			k.schema.Prune(old)
			k.schema.Default(old)
		}
		k.schema.Prune(content)
		errs = append(errs, k.schema.Validate(ctx, old, content)...)
	}
	object, old, err := k.decode(raw, oldRaw)
	if err != nil {
		if len(errs) == 0 {
			errs = append(errs, undecodable(err))
		}
		return validation.WithoutExcuse(errs), nil
	}
	k.defaults(object)
	if old != nil {
		k.defaults(old)
	}
	invariants := k.validate(ctx, old, object)
	return append(unsaidBy(invariants, validation.WithoutExcuse(errs)), invariants...), nil
}

// unsaidBy leaves out what the schema finds wrong with a value of which an
// invariant says more: not only that it is invalid but what to write.
func unsaidBy(invariants, errs field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		return err.Type == field.ErrorTypeInvalid && slices.ContainsFunc(invariants, func(invariant *field.Error) bool {
			return invariant.Field == err.Field && invariant.Type == field.ErrorTypeInvalid
		})
	})
}

func (k *typed[T]) decode(raw, oldRaw []byte) (object, old *T, err error) {
	object = new(T)
	if err := decodeTyped(raw, object); err != nil {
		return nil, nil, err
	}
	if len(oldRaw) > 0 {
		// A stored object that does not decode cannot be compared with.
		old = decodeAs[T](oldRaw)
	}
	return object, old, nil
}

// decodeAs gives an object as its type, or nil where that cannot hold it.
func decodeAs[T any](raw []byte) *T {
	object := new(T)
	if decodeTyped(raw, object) != nil {
		return nil
	}
	return object
}

// untolerated leaves out the faults that the stored object has as well.
func (k *typed[T]) untolerated(ctx context.Context, request *admissionv1.AdmissionRequest, errs field.ErrorList) (field.ErrorList, error) {
	oldErrs, err := k.errors(ctx, nil, request.OldObject.Raw, madeInHub(request))
	if err != nil {
		return nil, err
	}
	old, err := k.comparable(request.OldObject.Raw)
	if err != nil {
		return nil, err
	}
	object, err := k.comparable(request.Object.Raw)
	if err != nil {
		return nil, err
	}
	return validation.Tolerated(oldErrs, errs, old, object), nil
}

// complete gives an object with every default; one that does not decode as it
// is.
func (k *typed[T]) complete(raw []byte) ([]byte, error) {
	content, err := decodeContent(raw)
	if err != nil {
		return nil, err
	}
	defaulted, err := k.defaulted(content, false, nil)
	if err != nil || defaulted == nil {
		return raw, err
	}
	completed, err := json.Marshal(defaulted)
	if err != nil {
		return nil, fmt.Errorf("failed to write the object: %w", err)
	}
	return completed, nil
}

// comparable gives an object as it would read with all defaults.
func (k *typed[T]) comparable(raw []byte) (map[string]any, error) {
	content, err := decodeContent(raw)
	if err != nil {
		return nil, err
	}
	k.schema.Prune(content)
	defaulted, err := k.defaulted(content, false, nil)
	if err != nil || defaulted == nil {
		return content, err
	}
	return defaulted, nil
}

// madeInHub reports whether the API server has held the request to v1's schema.
func madeInHub(request *admissionv1.AdmissionRequest) bool {
	return requestKind(request).GroupVersion() == v1.GroupVersion
}

// tooMuchLost is the fault of an object that could not be read in another
// version without dropping fields.
func tooMuchLost(raw []byte) field.ErrorList {
	lost := conversion.Lost(raw)
	if lost <= conversion.MaxLost {
		return nil
	}
	return field.ErrorList{{
		Type: field.ErrorTypeTooLong, Field: "spec", BadValue: field.OmitValueType{},
		Detail: fmt.Sprintf("holds %d bytes that only %s can say, and %d is the most that can be kept when it is read in another version: shorten them",
			lost, v1.GroupVersion, conversion.MaxLost),
	}}
}
