package policies

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// input is what the policies that judge one request share: the request as Rego
// values, each built once.
type input struct {
	object    *ast.Term
	oldObject *ast.Term
	operation *ast.Term
	namespace *ast.Term
	// user and review are nil when no rule reads them; user also when unknown.
	user   *ast.Term
	review *ast.Term
}

// newInput parses the request, as far as rules read it. namespace holds the
// labels of its namespace, nil if they are not known.
func newInput(request *Request, namespace labels.Set, needs reads) (*input, error) {
	object, err := parseObject(request, request.Object, needs)
	if err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	oldObject, err := parseObject(request, request.OldObject, needs)
	if err != nil {
		return nil, fmt.Errorf("old object: %w", err)
	}
	if object == nil {
		// A deletion is judged on what is deleted.
		object = oldObject
	}
	in := &input{
		object:    object,
		oldObject: oldObject,
		operation: ast.StringTerm(string(request.Operation)),
		namespace: namespaceTerm(request, namespace),
	}
	if request.UserKnown && needs.user {
		if in.user, err = termOf(request.User); err != nil {
			return nil, fmt.Errorf("user: %w", err)
		}
	}
	if needs.review {
		in.review, err = in.reviewTerm(request, namespace)
	}
	return in, err
}

// asOld is the input as it would be if the old object were written by nobody in
// particular, out of nothing: it has what faults the object itself has, and none
// of who writes it, or of the change.
func (in *input) asOld(operation v1.PolicyOperation) *input {
	old := *in
	old.object, old.oldObject, old.user = in.oldObject, nil, nil
	old.operation = ast.StringTerm(string(operation))
	if in.review != nil {
		review := in.review.Value.(ast.Object)
		members := ast.NewObjectWithCapacity(review.Len())
		review.Foreach(func(key, value *ast.Term) {
			switch name, _ := key.Value.(ast.String); name {
			case "oldObject", "userInfo", "options":
			default:
				members.Insert(key, value)
			}
		})
		members.Insert(stringTerm("object"), in.oldObject)
		members.Insert(stringTerm("operation"), old.operation)
		old.review = ast.NewTerm(members)
	}
	return &old
}

// forPolicy is the input document of one policy.
func (in *input) forPolicy(reads reads, parameters *ast.Term) *ast.Term {
	pairs := make([][2]*ast.Term, 0, 7)
	add := func(name string, value *ast.Term) {
		if value != nil {
			pairs = append(pairs, [2]*ast.Term{stringTerm(name), value})
		}
	}
	add("object", in.object)
	add("oldObject", in.oldObject)
	add("operation", in.operation)
	add("user", in.user)
	add("namespace", in.namespace)
	add("parameters", parameters)
	add("review", in.review)
	document := ast.NewObject(pairs...)
	if !reads.document || in.object == nil {
		return ast.NewTerm(document)
	}
	// A rule written for conftest finds the object at the top.
	if object, ok := in.object.Value.(ast.Object); ok {
		object.Foreach(func(key, value *ast.Term) {
			if document.Get(key) == nil {
				document.Insert(key, value)
			}
		})
	}
	return ast.NewTerm(document)
}

// reviewTerm is the AdmissionRequest as rules written for Gatekeeper see it.
func (in *input) reviewTerm(request *Request, namespace labels.Set) (*ast.Term, error) {
	review := ast.NewObjectWithCapacity(24)
	add := func(name string, value *ast.Term) {
		if value != nil {
			review.Insert(stringTerm(name), value)
		}
	}
	text := func(name, value string) {
		if value != "" {
			add(name, ast.StringTerm(value))
		}
	}
	text("uid", request.UID)
	kind, resource := request.Kind, request.Resource
	add("kind", gvTerm(kind.Group, kind.Version, "kind", kind.Kind))
	add("resource", gvTerm(resource.Group, resource.Version, "resource", resource.Resource))
	text("subResource", request.SubResource)
	if request.RequestKind != nil {
		kind = *request.RequestKind
	}
	if request.RequestResource != nil {
		resource = *request.RequestResource
	}
	add("requestKind", gvTerm(kind.Group, kind.Version, "kind", kind.Kind))
	add("requestResource", gvTerm(resource.Group, resource.Version, "resource", resource.Resource))
	text("requestSubResource", cmp.Or(request.RequestSubResource, request.SubResource))
	text("name", request.Name)
	text("namespace", request.Namespace)
	add("operation", in.operation)
	add("userInfo", in.user)
	add("object", in.object)
	add("oldObject", in.oldObject)
	add("dryRun", ast.InternedTerm(request.DryRun))
	if !isAbsent(request.Options) {
		options, err := ParseJSON(request.Options)
		if err != nil {
			return nil, fmt.Errorf("options: %w", err)
		}
		add("options", ast.NewTerm(options))
	}
	if namespace != nil {
		metadata := ast.ObjectTerm(
			ast.Item(stringTerm("name"), ast.StringTerm(request.Namespace)),
			ast.Item(stringTerm("labels"), labelsTerm(namespace)))
		object := ast.ObjectTerm(ast.Item(stringTerm("metadata"), metadata))
		add("namespaceObject", object)
		add("_unstable", ast.ObjectTerm(ast.Item(stringTerm("namespace"), object)))
	}
	return ast.NewTerm(review), nil
}

func gvTerm(group, version, name, value string) *ast.Term {
	return ast.ObjectTerm(
		ast.Item(stringTerm("group"), ast.StringTerm(group)),
		ast.Item(stringTerm("version"), ast.StringTerm(version)),
		ast.Item(stringTerm(name), ast.StringTerm(value)))
}

// namespaceTerm is input.namespace; cluster-scoped objects have none.
func namespaceTerm(request *Request, namespace labels.Set) *ast.Term {
	if request.Namespace == "" {
		return nil
	}
	return ast.ObjectTerm(
		ast.Item(stringTerm("name"), ast.StringTerm(request.Namespace)),
		ast.Item(stringTerm("labels"), labelsTerm(namespace)))
}

func labelsTerm(set labels.Set) *ast.Term {
	object := ast.NewObjectWithCapacity(len(set))
	for name, value := range set {
		object.Insert(ast.StringTerm(name), ast.StringTerm(value))
	}
	return ast.NewTerm(object)
}

// termOf goes through JSON; it is for small values only.
func termOf(value any) (*ast.Term, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	parsed, err := ParseJSON(raw)
	if err != nil {
		return nil, err
	}
	return ast.NewTerm(parsed), nil
}

// parseObject parses an object of the request; nil when there is none.
func parseObject(request *Request, raw []byte, needs reads) (*ast.Term, error) {
	if isAbsent(raw) {
		return nil, nil
	}
	value, err := parseJSON(raw, !needs.managedFields)
	if err != nil {
		return nil, err
	}
	if secretKind(request.Kind.Group, request.Kind.Kind) {
		value = withoutSecrets(value)
	}
	return ast.NewTerm(value), nil
}

func secretKind(group, kind string) bool { return group == "" && kind == "Secret" }

// withoutSecrets returns a Secret with its keys and without their values, so
// that no rule can carry one into a message or a log.
func withoutSecrets(value ast.Value) ast.Value {
	redacted := ast.InternedTerm("")
	return mapMembers(value, func(name string, member ast.Value) ast.Value {
		switch name {
		case "data", "stringData":
			return mapMembers(member, func(string, ast.Value) ast.Value { return redacted.Value })
		case "metadata":
			return mapMembers(member, func(name string, member ast.Value) ast.Value {
				if name != "annotations" {
					return member
				}
				// kubectl apply keeps the whole object in an annotation.
				return mapMembers(member, func(string, ast.Value) ast.Value { return redacted.Value })
			})
		}
		return member
	})
}

// mapMembers returns an object with each member replaced by what f makes of it;
// other values as they are.
func mapMembers(value ast.Value, f func(name string, member ast.Value) ast.Value) ast.Value {
	object, ok := value.(ast.Object)
	if !ok {
		return value
	}
	mapped := ast.NewObjectWithCapacity(object.Len())
	object.Foreach(func(key, member *ast.Term) {
		name, _ := key.Value.(ast.String)
		mapped.Insert(key, ast.NewTerm(f(string(name), member.Value)))
	})
	return mapped
}

// labelsOf returns metadata.labels of an object.
func labelsOf(object *ast.Term) labels.Set {
	set := labels.Set{}
	if object == nil {
		return set
	}
	value, err := object.Value.Find(labelsPath)
	if err != nil {
		return set
	}
	if found, ok := value.(ast.Object); ok {
		found.Foreach(func(key, value *ast.Term) {
			name, _ := key.Value.(ast.String)
			if text, ok := value.Value.(ast.String); ok {
				set[string(name)] = string(text)
			}
		})
	}
	return set
}

var labelsPath = ast.Ref{ast.StringTerm("metadata"), ast.StringTerm("labels")}
