package conversion

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// An UnknownVersionError says that an object, or the version it shall have, is
// not one that conversion knows.
type UnknownVersionError struct {
	GroupVersionKind schema.GroupVersionKind
}

func (e *UnknownVersionError) Error() string {
	return fmt.Sprintf("no conversion for kind %q in version %q", e.GroupVersionKind.Kind, e.GroupVersionKind.GroupVersion())
}

// Convert gives the JSON of an object in another version of its group, which
// may be the one it has. It never looks at what a schema would say: fragments
// without spec or metadata and ill-typed values pass through it, and
// converting back gives what went in.
//
// Only apiVersion, spec and the annotation v1.RestoreAnnotation differ; status
// and the rest of metadata are carried as they are. metadata is always
// present in what comes back. The error is an *UnknownVersionError, or says
// where raw is not a JSON object.
func Convert(raw []byte, desired schema.GroupVersion) ([]byte, error) {
	object, err := splitObject(raw)
	if err != nil {
		return nil, err
	}
	if object.gvk().GroupVersion() == desired {
		return raw, nil
	}
	if err := object.convert(desired); err != nil {
		return nil, err
	}
	return object.appendTo(nil), nil
}

// convert changes an object to another version of its group.
func (o *rawObject) convert(desired schema.GroupVersion) error {
	gvk := o.gvk()
	if gvk.GroupVersion() == desired {
		return nil
	}
	kind := kinds[gvk.GroupKind()]
	if kind == nil || desired.Group != gvk.Group {
		return &UnknownVersionError{gvk}
	}
	if gvk.Version != hubVersion {
		if err := kind.convert(o, gvk.Version, true); err != nil {
			return err
		}
	}
	if desired.Version != hubVersion {
		if err := kind.convert(o, desired.Version, false); err != nil {
			return err
		}
	}
	o.apiVersion = desired.String()
	return nil
}

// directionOf gives the only direction that an object takes on its way to a
// version, nil where it takes none or several.
func directionOf(from schema.GroupVersionKind, apiVersion string) *half {
	kind := kinds[from.GroupKind()]
	version, ok := strings.CutPrefix(apiVersion, from.Group+"/")
	if kind == nil || !ok {
		return nil
	}
	if spoke := kind.spokes[from.Version]; spoke != nil && version == hubVersion {
		return spoke.up
	}
	if spoke := kind.spokes[version]; spoke != nil && from.Version == hubVersion {
		return spoke.down
	}
	return nil
}

// convert changes the spec of an object from one version to v1 (up), or from
// v1 to that version.
func (k *kind) convert(object *rawObject, version string, up bool) error {
	spoke := k.spokes[version]
	if spoke == nil {
		return &UnknownVersionError{k.groupKind.WithVersion(version)}
	}
	kept, metadata := takeAnnotation(object.metadata, v1.RestoreAnnotation)
	raw := object.rawSpec()
	if raw == nil && kept == "" {
		object.metadata = metadata
		return nil
	}
	if kept == "" && raw != nil {
		if converted, exact, err := object.convertSpec(spoke.half(up)); err == nil && exact {
			object.spec = converted
			object.metadata = metadata
			return nil
		}
	}
	spec, lost, err := spoke.convertExactly(raw, kept, up)
	if err != nil {
		return fmt.Errorf("failed to convert %s: %w", k.groupKind, err)
	}
	object.spec = specText{written: spec}
	object.metadata = putAnnotation(metadata, v1.RestoreAnnotation, lost)
	return nil
}

// Lost gives how many bytes a v1 object loses in the version that can say
// least of it; reading it there keeps them in v1.RestoreAnnotation.
func Lost(hub []byte) int {
	object, err := splitObject(hub)
	if err != nil || object.spec.size() <= MaxLost {
		return 0 // What is lost is a part of the spec.
	}
	kind := kinds[object.gvk().GroupKind()]
	if kind == nil {
		return 0
	}
	most := 0
	for _, spoke := range kind.spokes {
		if _, lost, err := spoke.convertExactly(object.rawSpec(), "", false); err == nil {
			most = max(most, len(lost))
		}
	}
	return most
}
