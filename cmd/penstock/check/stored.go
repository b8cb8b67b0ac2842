package check

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
)

// An identity is what tells objects apart, in whatever version they are.
type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

// A stored object is one that an update starts from.
type stored struct {
	Object
	// hub is the object in v1, as it is stored.
	hub []byte
	// found says that an update of it was judged.
	found bool
}

// Store makes an object known that the cluster has: a later one of the same
// kind, namespace and name is its update. What was stored had its defaults
// written and unknown fields dropped, so that a manifest will do.
func (c *Checker) Store(ctx context.Context, object Object) error {
	content, err := decode(object.JSON)
	if err != nil {
		return err
	}
	manifest := unstructured.Unstructured{Object: content}
	s := c.subjectOf(manifest.GroupVersionKind())
	if s == nil && c.judgesForeign(manifest.GroupVersionKind()) {
		return c.storeForeign(object, manifest)
	}
	if s == nil {
		return fmt.Errorf("%s %s is of no kind that is judged", manifest.GetKind(), manifest.GetName())
	}
	if _, err := s.schema().UnknownFields(content); err != nil {
		return err
	}
	id := identity{kind: s.written.GroupKind(), namespace: c.namespaceOf(s, manifest), name: manifest.GetName()}
	if content, err = ours(s, object.JSON); err != nil {
		return err
	}
	status, hasStatus := content["status"]
	complete(content, nil, id.namespace)
	if hasStatus {
		content["status"] = status
	}
	s.schema().Prune(content)
	s.schema().Default(content)
	hub, err := toVersion(content, penstockv1.GroupVersion)
	if err != nil {
		return err
	}
	request := &admission{subject: s, operation: admissionv1.Create, user: c.options}
	if hub, err = request.applyDefaults(ctx, hub); err != nil {
		return err
	}
	c.stored[id] = &stored{Object: object, hub: hub}
	return nil
}

// Unmatched gives the stored objects that no object was an update of.
func (c *Checker) Unmatched() []*Unreadable {
	var unmatched []*Unreadable
	for id, stored := range c.stored {
		if !stored.found {
			unmatched = append(unmatched, &Unreadable{
				File: stored.File, Document: stored.Document, Line: stored.Line(""),
				Message: fmt.Sprintf("no object to be judged is an update of %s %s", id.kind.Kind, fullName(id.namespace, id.name)),
			})
		}
	}
	return unmatched
}

// storedFor gives the stored object that an object updates, or nil.
func (c *Checker) storedFor(s *subject, result *Result) *stored {
	found := c.stored[identity{kind: s.written.GroupKind(), namespace: result.Namespace, name: result.Name}]
	if found != nil {
		found.found = true
	}
	return found
}

// in gives the stored object in a version, or nil if there is none.
func (s *stored) in(version schema.GroupVersion) (map[string]any, error) {
	if s == nil {
		return nil, nil
	}
	raw, err := conversion.Convert(s.hub, version)
	if err != nil {
		return nil, errors.Join(errors.New("failed to convert the stored object"), err)
	}
	return decode(raw)
}

// keepRecord keeps in metadata what an update does not say: what the API server
// wrote, and the annotation that keeps what the request's version cannot say,
// which is not the author's and which apply therefore leaves alone.
func keepRecord(metadata, old map[string]any) {
	was, _ := old["metadata"].(map[string]any)
	for _, name := range []string{"uid", "resourceVersion", "creationTimestamp", "generation",
		"deletionTimestamp", "deletionGracePeriodSeconds", "finalizers", "ownerReferences", "managedFields"} {
		if value, had := was[name]; had && metadata[name] == nil {
			metadata[name] = value
		}
	}
	if metadata["resourceVersion"] == nil {
		// An update must name one. This stored object was none yet.
		metadata["resourceVersion"] = "1"
	}
	kept, had := annotation(was)
	if _, has := annotation(metadata); !had || has {
		return
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[penstockv1.RestoreAnnotation] = kept
}

func annotation(metadata map[string]any) (any, bool) {
	annotations, _ := metadata["annotations"].(map[string]any)
	value, ok := annotations[penstockv1.RestoreAnnotation]
	return value, ok
}
