package validation

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-dev/penstock/config/crd"
)

// schemasOf are the schemas of Penstock's kinds that were asked for.
var schemasOf sync.Map

// Schemas gives the schemas of one of Penstock's kinds, by version. They are built
// once in a process: it takes a tenth of a second for each.
func Schemas(kind schema.GroupKind) (map[string]*Schema, error) {
	built, _ := schemasOf.LoadOrStore(kind, sync.OnceValues(func() (map[string]*Schema, error) {
		definition, err := crd.Get(kind)
		if err != nil {
			return nil, err
		}
		schemas := map[string]*Schema{}
		for _, version := range definition.Spec.Versions {
			if schemas[version.Name], err = NewSchema(definition, version.Name); err != nil {
				return nil, err
			}
		}
		return schemas, nil
	}))
	schemas, err := built.(func() (map[string]*Schema, error))()
	return maps.Clone(schemas), err
}
