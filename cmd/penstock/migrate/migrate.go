package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

const (
	// managedBy labels the migrations that this package makes.
	managedByLabel = "app.kubernetes.io/managed-by"
	managedByValue = "penstock-migrate"

	// maxAttempts is how often a kind is migrated anew because its definition
	// changed meanwhile.
	maxAttempts = 3

	// reasonFailed is the reason that kube-controller-manager gives to the
	// condition StorageMigrating of a definition after a migration that failed.
	reasonFailed = "MigrationFailed"
)

// A Migrator migrates the kinds of Penstock in one cluster.
type Migrator struct {
	Client client.Client
	// Say is told what happens, a line each.
	Say func(format string, arguments ...any)
	// Poll is how often to look.
	Poll time.Duration
}

// Definitions gives the definitions of Penstock's kinds that have more than one
// version, by name.
func (m *Migrator) Definitions(ctx context.Context) ([]apiextensionsv1.CustomResourceDefinition, error) {
	var all apiextensionsv1.CustomResourceDefinitionList
	if err := m.Client.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("failed to list the CustomResourceDefinitions: %w", err)
	}
	found := slices.DeleteFunc(all.Items, func(definition apiextensionsv1.CustomResourceDefinition) bool {
		return definition.Spec.Group != v1.GroupName
	})
	if len(found) == 0 {
		return nil, fmt.Errorf("the cluster has no kinds of %s: install Penstock's CustomResourceDefinitions first", v1.GroupName)
	}
	found = slices.DeleteFunc(found, func(definition apiextensionsv1.CustomResourceDefinition) bool {
		return len(definition.Spec.Versions) < 2
	})
	slices.SortFunc(found, func(a, b apiextensionsv1.CustomResourceDefinition) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}

// Migrate has all objects of a kind stored in v1. It goes on with a migration
// that is under way, returns at once if there is nothing to do, and may be called
// again after an error. When it returns no error, nothing is stored in another
// version, and status.storedVersions says so.
func (m *Migrator) Migrate(ctx context.Context, name string) error {
	for range maxAttempts {
		var definition apiextensionsv1.CustomResourceDefinition
		if err := m.Client.Get(ctx, client.ObjectKey{Name: name}, &definition); err != nil {
			return fmt.Errorf("failed to read the CustomResourceDefinition %s: %w", name, err)
		}
		if stored := storageVersion(&definition); stored != v1.GroupVersion.Version {
			return fmt.Errorf("%s is stored in %s: apply the CustomResourceDefinitions of this Penstock first, which store v1", name, stored)
		}
		if migrated(&definition) {
			m.Say("%s: everything is stored in %s", name, v1.GroupVersion.Version)
			return nil
		}
		m.Say("%s: stored in %v so far", name, definition.Status.StoredVersions)
		if err := m.run(ctx, &definition); err != nil {
			return err
		}
	}
	return fmt.Errorf("the definition of %s changed during each of %d migrations: leave it alone and run this again", name, maxAttempts)
}

func storageVersion(definition *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range definition.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

// migrated reports whether nothing can be stored in another version than the
// present one. After a migration that failed, kube-controller-manager 1.37 takes
// the others out of storedVersions all the same, so that alone proves nothing.
func migrated(definition *apiextensionsv1.CustomResourceDefinition) bool {
	condition := apihelpers.FindCRDCondition(definition, apiextensionsv1.StorageMigrating)
	if condition != nil && (condition.Status == apiextensionsv1.ConditionTrue || condition.Reason == reasonFailed) {
		return false
	}
	return slices.Equal(definition.Status.StoredVersions, []string{storageVersion(definition)})
}

// run goes through one migration to its end.
func (m *Migrator) run(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition) error {
	resource := metav1.GroupResource{Group: definition.Spec.Group, Resource: definition.Spec.Names.Plural}
	migration, err := m.current(ctx, resource)
	if err != nil {
		return err
	}
	if migration, err = m.follow(ctx, migration); err != nil {
		return err
	}
	failed := meta.FindStatusCondition(migration.Status.Conditions, string(storagemigrationv1.MigrationFailed))
	if failed == nil || failed.Status != metav1.ConditionTrue {
		return m.discard(ctx, migration)
	}
	err = fmt.Errorf("the migration of %s failed: %s; mend that and run this again", definition.Name, failed.Message)
	return errors.Join(err, m.remember(ctx, definition))
}

// current gives the migration of a resource that is under way, or a new one.
func (m *Migrator) current(ctx context.Context, resource metav1.GroupResource) (*storagemigrationv1.StorageVersionMigration, error) {
	var all storagemigrationv1.StorageVersionMigrationList
	err := m.Client.List(ctx, &all)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the API server does not serve %s, which Kubernetes does since 1.37: %w", storagemigrationv1.SchemeGroupVersion, err)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to list the migrations: %w", err)
	}
	for i := range all.Items {
		migration := &all.Items[i]
		if migration.Spec.Resource != resource {
			continue
		}
		if !ended(migration) {
			m.Say("%s.%s: going on with migration %s", resource.Resource, resource.Group, migration.Name)
			return migration, nil
		}
		if migration.Labels[managedByLabel] == managedByValue {
			if err := m.discard(ctx, migration); err != nil {
				return nil, err
			}
		}
	}
	migration := &storagemigrationv1.StorageVersionMigration{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "penstock-" + resource.Resource + "-",
			Labels:       map[string]string{managedByLabel: managedByValue},
		},
		Spec: storagemigrationv1.StorageVersionMigrationSpec{Resource: resource},
	}
	if err := m.Client.Create(ctx, migration); err != nil {
		return nil, fmt.Errorf("failed to create a migration of %s: %w", resource.String(), err)
	}
	m.Say("%s.%s: migration %s created", resource.Resource, resource.Group, migration.Name)
	return migration, nil
}

func (m *Migrator) discard(ctx context.Context, migration *storagemigrationv1.StorageVersionMigration) error {
	if migration.Labels[managedByLabel] != managedByValue {
		return nil
	}
	if err := m.Client.Delete(ctx, migration); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("failed to delete migration %s, which has ended: %w", migration.Name, err)
	}
	return nil
}

// ended reports whether a migration has, and what follows from it is in the
// definition.
func ended(migration *storagemigrationv1.StorageVersionMigration) bool {
	is := func(condition storagemigrationv1.MigrationConditionType) bool {
		return meta.IsStatusConditionTrue(migration.Status.Conditions, string(condition))
	}
	return (is(storagemigrationv1.MigrationSucceeded) || is(storagemigrationv1.MigrationFailed)) && !is(storagemigrationv1.MigrationRunning)
}

// follow waits for the end of a migration and tells how far it is.
func (m *Migrator) follow(ctx context.Context, migration *storagemigrationv1.StorageVersionMigration) (*storagemigrationv1.StorageVersionMigration, error) {
	said := ""
	for {
		var now storagemigrationv1.StorageVersionMigration
		switch err := m.Client.Get(ctx, client.ObjectKeyFromObject(migration), &now); {
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("migration %s was deleted before its end: run this again", migration.Name)
		case err != nil && ctx.Err() == nil:
			return nil, fmt.Errorf("failed to read migration %s: %w", migration.Name, err)
		case err == nil && ended(&now):
			return &now, nil
		case err == nil:
			running := meta.FindStatusCondition(now.Status.Conditions, string(storagemigrationv1.MigrationRunning))
			if running != nil && running.Message != said {
				said = running.Message
				m.Say("%s: %s", now.Name, said)
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("stopped waiting for migration %s, which the cluster goes on with; run this again to see its end: %w", migration.Name, ctx.Err())
		case <-time.After(m.Poll):
		}
	}
}

// remember puts back into storedVersions what a migration that failed took out of
// it: objects may be stored in those versions, and a definition without them
// would leave these objects unreadable.
func (m *Migrator) remember(ctx context.Context, was *apiextensionsv1.CustomResourceDefinition) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var definition apiextensionsv1.CustomResourceDefinition
		if err := m.Client.Get(ctx, client.ObjectKeyFromObject(was), &definition); err != nil {
			return err
		}
		stored := slices.Clone(definition.Status.StoredVersions)
		for _, version := range definition.Spec.Versions {
			if !slices.Contains(stored, version.Name) {
				stored = append(stored, version.Name)
			}
		}
		if len(stored) == len(definition.Status.StoredVersions) {
			return nil
		}
		definition.Status.StoredVersions = stored
		return m.Client.Status().Update(ctx, &definition)
	})
	if err != nil {
		return fmt.Errorf("failed to note in status.storedVersions of %s that objects may be stored in any version: %w", was.Name, err)
	}
	return nil
}

// kindOf is the kind and version that a definition stores.
func kindOf(definition *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: definition.Spec.Group, Version: storageVersion(definition), Kind: definition.Spec.Names.Kind}
}
