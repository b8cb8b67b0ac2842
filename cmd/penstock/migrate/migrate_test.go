package migrate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

func TestMigratedTakesStoredVersionsForWhatTheyAreWorth(t *testing.T) {
	tests := map[string]struct {
		stored    []string
		condition *apiextensionsv1.CustomResourceDefinitionCondition
		want      bool
	}{
		"never stored otherwise": {stored: []string{"v1"}, want: true},
		"stored otherwise":       {stored: []string{"v1alpha1", "v1"}},
		"under way":              {stored: []string{"v1"}, condition: &apiextensionsv1.CustomResourceDefinitionCondition{Status: apiextensionsv1.ConditionTrue, Reason: "MigrationRunning"}},
		"failed and pruned":      {stored: []string{"v1"}, condition: &apiextensionsv1.CustomResourceDefinitionCondition{Status: apiextensionsv1.ConditionFalse, Reason: "MigrationFailed"}},
		"succeeded":              {stored: []string{"v1"}, condition: &apiextensionsv1.CustomResourceDefinitionCondition{Status: apiextensionsv1.ConditionFalse, Reason: "MigrationSucceeded"}, want: true},
		"changed meanwhile":      {stored: []string{"v1", "v1alpha1"}, condition: &apiextensionsv1.CustomResourceDefinitionCondition{Status: apiextensionsv1.ConditionFalse, Reason: "MigrationSucceeded"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			definition := &apiextensionsv1.CustomResourceDefinition{}
			definition.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1"}, {Name: "v1", Storage: true}}
			definition.Status.StoredVersions = tc.stored
			if tc.condition != nil {
				tc.condition.Type = apiextensionsv1.StorageMigrating
				definition.Status.Conditions = append(definition.Status.Conditions, *tc.condition)
			}
			if got := migrated(definition); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestEndedWaitsForWhatFollows(t *testing.T) {
	running := func(status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: string(storagemigrationv1.MigrationRunning), Status: status}
	}
	succeeded := metav1.Condition{Type: string(storagemigrationv1.MigrationSucceeded), Status: metav1.ConditionTrue}
	failed := metav1.Condition{Type: string(storagemigrationv1.MigrationFailed), Status: metav1.ConditionTrue}
	tests := map[string]struct {
		conditions []metav1.Condition
		want       bool
	}{
		"new":                {},
		"running":            {conditions: []metav1.Condition{running(metav1.ConditionTrue)}},
		"about to end":       {conditions: []metav1.Condition{running(metav1.ConditionTrue), succeeded}},
		"succeeded":          {conditions: []metav1.Condition{running(metav1.ConditionFalse), succeeded}, want: true},
		"failed":             {conditions: []metav1.Condition{running(metav1.ConditionFalse), failed}, want: true},
		"failed before that": {conditions: []metav1.Condition{failed}, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			migration := &storagemigrationv1.StorageVersionMigration{Status: storagemigrationv1.StorageVersionMigrationStatus{Conditions: tc.conditions}}
			if got := ended(migration); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestManagersOf(t *testing.T) {
	entries := []metav1.ManagedFieldsEntry{
		{Manager: "kubectl", APIVersion: "penstock.dev/v1alpha1"},
		{Manager: "kubectl", APIVersion: "penstock.dev/v1"},
		{Manager: "argocd", APIVersion: "penstock.dev/v1alpha1", Subresource: "scale"},
		{Manager: "argocd", APIVersion: "penstock.dev/v1alpha1"},
		{Manager: "scaler", APIVersion: "autoscaling/v1", Subresource: "scale"},
		{Manager: "broken", APIVersion: "a/b/c"},
	}
	want := map[Manager]bool{{"kubectl", "v1alpha1"}: true, {"argocd", "v1alpha1"}: true}
	if diff := cmp.Diff(want, managersOf(entries, v1.GroupVersion)); diff != "" {
		t.Errorf("managers (-want +got):\n%s", diff)
	}
}
