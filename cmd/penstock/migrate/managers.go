package migrate

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// page is how many objects are listed at once.
const page = 500

// A Manager is somebody who wrote objects in some version, as managedFields say.
type Manager struct {
	Name    string
	Version string
}

// Managers counts the objects of a kind that hold fields which were written in
// another version than the stored one, by who wrote them: when that version is no
// longer served, their next write in it fails.
func (m *Migrator) Managers(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition) (byManager map[Manager]int, objects int, err error) {
	kind := kindOf(definition)
	byManager = map[Manager]int{}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	for {
		if err := m.Client.List(ctx, list, client.Limit(page), client.Continue(list.Continue)); err != nil {
			return nil, 0, fmt.Errorf("failed to list the objects of kind %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			found := managersOf(list.Items[i].ManagedFields, kind.GroupVersion())
			if len(found) > 0 {
				objects++
			}
			for manager := range found {
				byManager[manager]++
			}
		}
		if list.Continue == "" {
			return byManager, objects, nil
		}
	}
}

// managersOf gives those who wrote in another version of the group than stored.
func managersOf(entries []metav1.ManagedFieldsEntry, stored schema.GroupVersion) map[Manager]bool {
	found := map[Manager]bool{}
	for _, entry := range entries {
		version, err := schema.ParseGroupVersion(entry.APIVersion)
		if err == nil && version.Group == stored.Group && version.Version != stored.Version {
			found[Manager{entry.Manager, version.Version}] = true
		}
	}
	return found
}
