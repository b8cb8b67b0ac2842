package conversion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConvertForGoodTellsWhatIsLost(t *testing.T) {
	tests := map[string]struct {
		spec string
		want map[string]string
	}{
		"nothing":               {`{"jaxReplicaSpecs":{"Worker":{"replicas":2}}}`, nil},
		"two frameworks":        {`{"jaxReplicaSpecs":{"Worker":{"replicas":2}},"xgbReplicaSpecs":{"Master":{"replicas":1}}}`, map[string]string{"spec.jaxReplicaSpecs": `{"Worker":{"replicas":2}}`}},
		"twin fields":           {`{"nprocPerNode":"2","elasticPolicy":{"nProcPerNode":4},"pytorchReplicaSpecs":{"Worker":{}}}`, map[string]string{"spec.elasticPolicy.nProcPerNode": `4`}},
		"a field's older place": {`{"cleanPodPolicy":"All","mpiReplicaSpecs":{"Worker":{}}}`, nil},
		"a field's older name":  {`{"elasticPolicy":{"nProcPerNode":4},"pytorchReplicaSpecs":{"Worker":{}}}`, nil},
		"a null":                {`{"pytorchReplicaSpecs":{"Worker":null},"runPolicy":null}`, nil},
		"an empty list":         {`{"pytorchReplicaSpecs":{"Worker":{}},"elasticPolicy":{"metrics":[],"other":[]}}`, nil},
		"what came later":       {`{"cleanPodPolicy":"All","runPolicy":{"cleanPodPolicy":"None"},"tfReplicaSpecs":{"Worker":{}}}`, map[string]string{"spec.cleanPodPolicy": `"All"`}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			hub, lost, err := ConvertForGood([]byte(`{"apiVersion":"penstock.dev/v1alpha1","kind":"TrainingJob","spec":` + tc.spec + `}`))
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]string
			for _, loss := range lost {
				if got == nil {
					got = map[string]string{}
				}
				got[loss.Field] = string(loss.Value)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("lost (-want +got):\n%s\nin %s", diff, hub)
			}
		})
	}
}
