package convert

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/cmd/penstock/check"
	"github.com/penstock-dev/penstock/config/crd"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// A Converter converts objects to one version. It is for one goroutine.
type Converter struct {
	version string
	// schemas are built when first needed: most manifests are of one kind.
	schemas map[schema.GroupVersionKind]*validation.Schema
}

// New gives a converter to a version of Penstock's kinds.
func New(version string) *Converter {
	return &Converter{version: version, schemas: map[schema.GroupVersionKind]*validation.Schema{}}
}

// A Result is what became of one object.
type Result struct {
	Object check.Object
	Kind   schema.GroupVersionKind
	// Namespace and Name are those of the object, as far as it has them.
	Namespace, Name string
	// JSON is the object in the other version, its members in the order in which
	// they were written.
	JSON []byte
	// Lost are the fields that have no home in the other version.
	Lost []conversion.Loss
	// Notes say what else is not as it was.
	Notes []string
}

// String names the object and where it is written.
func (r *Result) String() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return fmt.Sprintf("%s: %s %s", r.Object.Place(), r.Kind.Kind, name)
}

// Convert converts an object of one of Penstock's kinds, or of an upstream kind
// with the shape of one. Others are given back as they are. The error says what
// is wrong with the object.
func (c *Converter) Convert(object check.Object) (*Result, error) {
	written, err := object.Ordered()
	if err != nil {
		return nil, err
	}
	manifest, err := decode(written)
	if err != nil {
		return nil, err
	}
	result := &Result{
		Object: object, Kind: manifest.GroupVersionKind(), Namespace: manifest.GetNamespace(), Name: manifest.GetName(), JSON: written,
	}
	from := result.Kind
	if own, ok := conversion.Upstream(from); ok {
		result.Notes = leaveBehind(manifest)
		if result.JSON, err = fromUpstream(manifest, written); err != nil {
			return nil, err
		}
		from = own
	}
	to := schema.GroupVersion{Group: v1.GroupName, Version: c.version}
	definition, err := crd.Get(from.GroupKind())
	switch {
	case from.Group != v1.GroupName:
		result.Notes = append(result.Notes, "left as it is: no kind of Penstock has its shape")
		return result, nil
	case err != nil:
		return nil, fmt.Errorf("no version of Penstock has kind %s", from.Kind)
	case len(definition.Spec.Versions) == 1:
		// There is nothing to convert, and nothing to tell.
		return result, nil
	}
	return result, c.convert(result, from, to)
}

// convert converts the object of a result, and notes what has no home.
func (c *Converter) convert(result *Result, from schema.GroupVersionKind, to schema.GroupVersion) error {
	own, unknown, err := c.prune(from, result.JSON)
	if err != nil {
		return err
	}
	if err := result.lose(result.JSON, unknown, asWritten); err != nil {
		return err
	}
	// hub is the object in v1, spoke the kind and version that it is not in.
	hub, lost, err := conversion.ConvertForGood(own)
	if err != nil {
		return err
	}
	result.JSON = hub
	spoke, back := from, conversion.FieldPaths(from, hub)
	if to == v1.GroupVersion {
		result.Lost = append(result.Lost, lost...)
	} else {
		if result.JSON, err = conversion.Convert(own, to); err != nil {
			return err
		}
		spoke, back = to.WithKind(from.Kind), asWritten
	}
	converted, unknown, err := c.prune(to.WithKind(from.Kind), result.JSON)
	if err != nil {
		return err
	}
	if err := result.lose(result.JSON, unknown, back); err != nil {
		return err
	}
	slices.SortStableFunc(result.Lost, func(a, b conversion.Loss) int { return cmp.Compare(a.Field, b.Field) })
	result.JSON, err = check.Reorder(converted, own, samePlaces(hub, conversion.FieldPaths(spoke, hub), from, to))
	return err
}

// samePlaces gives, by its path in the version converted to, the path that a
// value whose members keep their order has in the version converted from.
func samePlaces(hub []byte, spokePath func(string) string, from schema.GroupVersionKind, to schema.GroupVersion) map[string]string {
	places := map[string]string{"metadata": "metadata"}
	var object struct {
		Spec struct {
			Roles []json.RawMessage `json:"roles"`
		} `json:"spec"`
	}
	// Roles that are no list have no templates.
	_ = json.Unmarshal(hub, &object)
	for i := range object.Spec.Roles {
		hubPath := fmt.Sprintf("spec.roles[%d].template", i)
		in := map[string]string{v1.GroupVersion.Version: hubPath}
		of := func(version string) string { return cmp.Or(in[version], spokePath(hubPath)) }
		places[of(to.Version)] = of(from.Version)
	}
	return places
}

func asWritten(path string) string { return path }

// prune gives an object without the fields that the schema of its version does
// not know, and the paths of these.
func (c *Converter) prune(kind schema.GroupVersionKind, raw []byte) (pruned []byte, unknown []string, err error) {
	known := c.schemas[kind]
	if known == nil {
		definition, err := crd.Get(kind.GroupKind())
		if err != nil {
			return nil, nil, fmt.Errorf("no version of Penstock has kind %s", kind.Kind)
		}
		if known, err = validation.NewSchema(definition, kind.Version); err != nil {
			return nil, nil, fmt.Errorf("no kind %s in version %s", kind.Kind, kind.GroupVersion())
		}
		c.schemas[kind] = known
	}
	object, err := decode(raw)
	if err != nil {
		return nil, nil, err
	}
	unknown = known.Prune(object.Object)
	dropNulls(object.Object)
	if raw, err = rewrite(object, raw); err != nil {
		return nil, nil, err
	}
	slices.Sort(unknown)
	return raw, unknown, nil
}

// decode reads an object, with numbers as they are written.
func decode(raw []byte) (*unstructured.Unstructured, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	object := &unstructured.Unstructured{}
	if err := decoder.Decode(&object.Object); err != nil {
		return nil, fmt.Errorf("failed to read the object: %w", err)
	}
	return object, nil
}

// dropNulls takes away the members of objects that are null: they say nothing.
func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(_ string, member any) bool { return member == nil })
		for _, member := range value {
			dropNulls(member)
		}
	case []any:
		for _, item := range value {
			dropNulls(item)
		}
	}
}

// rewrite writes an object with its members in the order of a text.
func rewrite(object *unstructured.Unstructured, text []byte) ([]byte, error) {
	raw, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("failed to write the object: %w", err)
	}
	return check.InOrderOf(raw, text)
}

// lose notes fields of an object, which back gives as they were written.
func (r *Result) lose(raw []byte, paths []string, back func(string) string) error {
	object, err := decode(raw)
	if err != nil {
		return err
	}
	for _, path := range paths {
		value, _ := validation.Lookup(object.Object, path)
		text, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("failed to write %s: %w", path, err)
		}
		r.Lost = append(r.Lost, conversion.Loss{Field: back(path), Value: text})
	}
	return nil
}

// serverSet are the members of metadata that the API server writes.
var serverSet = []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"}

// leaveBehind takes from an upstream object what is about that object and not
// about its workload, and says what of it was there.
func leaveBehind(manifest *unstructured.Unstructured) []string {
	var notes []string
	if status, ok := manifest.Object["status"].(map[string]any); ok && len(status) > 0 {
		notes = append(notes, "status is left behind: it is for the controller of the new object to write")
	}
	delete(manifest.Object, "status")
	metadata, _ := manifest.Object["metadata"].(map[string]any)
	if finalizers := manifest.GetFinalizers(); len(finalizers) > 0 {
		notes = append(notes, fmt.Sprintf("metadata.finalizers %q are left behind: they are for the controller that set them", finalizers))
	}
	if len(manifest.GetOwnerReferences()) > 0 {
		notes = append(notes, "metadata.ownerReferences are left behind: the new object would be deleted with the owner of the old one")
	}
	maps.DeleteFunc(metadata, func(name string, _ any) bool {
		return slices.Contains(serverSet, name) || name == "finalizers" || name == "ownerReferences"
	})
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	return notes
}

func fromUpstream(manifest *unstructured.Unstructured, written []byte) ([]byte, error) {
	raw, err := rewrite(manifest, written)
	if err != nil {
		return nil, err
	}
	return conversion.FromUpstream(raw)
}
