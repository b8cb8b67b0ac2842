package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// Of an elastic job elastic.replicas is the number of workers.
func TestAdviseWorkers(t *testing.T) {
	elastic := func(replicas, elastic string) string {
		return `spec: {framework: PyTorch, elastic: {minReplicas: 1, maxReplicas: 9` + elastic + `}, roles: [` +
			`{name: Master, template: {spec: {containers: [{name: pytorch, image: a}]}}}, ` +
			`{name: Worker` + replicas + `, template: {spec: {containers: [{name: pytorch, image: a}]}}}]}`
	}
	told := func(replicas, elastic string) []string {
		return []string{"spec.roles[1].replicas: Forbidden: is " + replicas + " and has no effect: the number of workers of an elastic job is " +
			"spec.elastic.replicas, which is " + elastic + "; change that, and remove this"}
	}
	fixed := `spec: {framework: PyTorch, runPolicy: {suspend: true}, roles: [{name: Worker, replicas: 3, template: {spec: {containers: [{name: pytorch, image: a}]}}}]}`
	tests := map[string]struct {
		old, job string
		want     []string
	}{
		"one number":                       {job: elastic(", replicas: 3", "")},
		"the same twice":                   {job: elastic(", replicas: 3", ", replicas: 3")},
		"that of elastic alone":            {job: elastic("", ", replicas: 3")},
		"two":                              {job: elastic(", replicas: 3", ", replicas: 4"), want: told("3", "4")},
		"the one that does not count":      {old: elastic(", replicas: 3", ", replicas: 3"), job: elastic(", replicas: 5", ", replicas: 3"), want: told("5", "3")},
		"a scaling":                        {old: elastic(", replicas: 3", ", replicas: 3"), job: elastic(", replicas: 3", ", replicas: 5")},
		"the same again after a scaling":   {old: elastic(", replicas: 3", ", replicas: 5"), job: elastic(", replicas: 3", ", replicas: 5")},
		"both, to the same":                {old: elastic(", replicas: 3", ", replicas: 3"), job: elastic(", replicas: 5", ", replicas: 5")},
		"as it was told to, left out":      {old: elastic(", replicas: 3", ", replicas: 5"), job: elastic("", ", replicas: 5")},
		"a job that becomes elastic":       {old: fixed, job: elastic(", replicas: 3", ", replicas: 5"), want: told("3", "5")},
		"a job that is not elastic at all": {old: fixed, job: fixed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var old *v1.TrainingJob
			if tc.old != "" {
				old = jobOf(t, tc.old)
			}
			if diff := cmp.Diff(tc.want, words(validation.AdviseTrainingJob(old, jobOf(t, tc.job)))); diff != "" {
				t.Errorf("advice (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAdviseTrainingJob(t *testing.T) {
	worker := func(metadata, env string) string {
		return `roles: [{name: Worker, template: {metadata: {` + metadata + `}, spec: {containers: [{name: log, image: b, env: [` + env + `]}, {name: pytorch, image: a, env: [` + env + `]}]}}}]`
	}
	const lost = "is a label that Penstock sets on every pod, and this value is dropped: remove it"
	tests := map[string]struct {
		old, job string
		want     []string
	}{
		"nothing": {job: `{framework: PyTorch, ` + worker("labels: {a: b}", "{name: A}, {name: MASTER_ADDR}, {name: RANK}") + `}`},
		"variables of every container": {
			job: `{framework: PyTorch, ` + worker("", "{name: A}, {name: PET_NNODES}") + `}`,
			want: []string{
				"spec.roles[0].template.spec.containers[0].env[1]: Forbidden: PET_NNODES is set by Penstock in the PyTorch container log, and this value is dropped: remove it or give it another name",
				"spec.roles[0].template.spec.containers[1].env[1]: Forbidden: PET_NNODES is set by Penstock in the PyTorch container pytorch, and this value is dropped: remove it or give it another name",
			},
		},
		"a variable of the main container": {
			job: `{framework: TensorFlow, roles: [{name: Worker, replicas: 2, template: {spec: {containers: [{name: log, image: b, env: [{name: TF_CONFIG}]}, {name: tensorflow, image: a, env: [{name: TF_CONFIG}]}]}}}]}`,
			want: []string{
				"spec.roles[0].template.spec.containers[1].env[0]: Forbidden: TF_CONFIG is set by Penstock in the TensorFlow container tensorflow, and this value is dropped: remove it or give it another name",
			},
		},
		"a lone TensorFlow worker": {
			job: `{framework: TensorFlow, roles: [{name: Worker, template: {spec: {containers: [{name: tensorflow, image: a, env: [{name: TF_CONFIG}]}]}}}]}`,
		},
		"labels": {
			job:  `{framework: PyTorch, ` + worker("labels: {penstock.dev/role: boss, app.kubernetes.io/managed-by: Helm}", "") + `}`,
			want: []string{"spec.roles[0].template.metadata.labels[app.kubernetes.io/managed-by]: Forbidden: " + lost, "spec.roles[0].template.metadata.labels[penstock.dev/role]: Forbidden: " + lost},
		},
		"upstream's controller": {
			job: `{framework: PyTorch, runPolicy: {managedBy: kubeflow.org/training-operator}, ` + worker("", "") + `}`,
			want: []string{"spec.runPolicy.managedBy: Forbidden: names the Training Operator, which runs no TrainingJob of penstock.dev, and Penstock leaves the job to it: " +
				"nobody will run it; make it without managedBy"},
		},
		"a slip of Penstock's own name": {
			job: `{framework: PyTorch, runPolicy: {managedBy: penstock.dev/controller}, ` + worker("", "") + `}`,
			want: []string{"spec.runPolicy.managedBy: Forbidden: names penstock.dev/controller, and Penstock calls itself penstock.dev/manager, so it leaves this to somebody else: " +
				"nobody will run it; make it without managedBy"},
		},
		"Penstock by its name": {job: `{framework: PyTorch, runPolicy: {managedBy: penstock.dev/manager}, ` + worker("", "") + `}`},
		"metadata that pods do not get": {
			job: `{framework: PyTorch, ` + worker("name: a, namespace: b, finalizers: [a/b], generateName: c, annotations: {a: b}", "") + `}`,
			want: []string{
				"spec.roles[0].template.metadata.name: Forbidden: pods are named after their role and index, and this is dropped: remove it",
				"spec.roles[0].template.metadata.generateName: Forbidden: pods are named after their role and index, and this is dropped: remove it",
				"spec.roles[0].template.metadata.namespace: Forbidden: pods are made in the namespace of what they belong to, and this is dropped: remove it",
				"spec.roles[0].template.metadata.finalizers: Forbidden: of a template's metadata pods get labels and annotations only, and this is dropped: remove it",
			},
		},
		"a gang that nothing restarts": {
			job: `{framework: JAX, runPolicy: {restart: Gang}, roles: [{name: Worker, template: {spec: {containers: [{name: jax, image: a}]}}}]}`,
			want: []string{"spec.runPolicy.restart: Forbidden: is Gang, and restartPolicy is Never for every role, so the first pod that fails ends the job, and only one that is lost restarts all: " +
				"write restartPolicy ExitCode or OnFailure to have failures restart them"},
		},
		"a gang that failures restart": {
			job: `{framework: JAX, runPolicy: {restart: Gang}, roles: [{name: Worker, restartPolicy: ExitCode, template: {spec: {containers: [{name: jax, image: a}]}}}]}`,
		},
		"another controller":                {job: `{framework: PyTorch, runPolicy: {managedBy: kueue.x-k8s.io/multikueue}, ` + worker("", "") + `}`},
		"what the author has been told of":  {old: `{framework: PyTorch, ` + worker("", "{name: PET_NNODES}") + `}`, job: `{framework: PyTorch, runPolicy: {suspend: true}, ` + worker("", "{name: PET_NNODES}") + `}`},
		"what the author has not been told": {old: `{framework: PyTorch, ` + worker("", "") + `}`, job: `{framework: PyTorch, ` + worker("labels: {penstock.dev/index: a}", "") + `}`, want: []string{"spec.roles[0].template.metadata.labels[penstock.dev/index]: Forbidden: " + lost}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var old *v1.TrainingJob
			if tc.old != "" {
				old = jobOf(t, "spec: "+tc.old)
			}
			if diff := cmp.Diff(tc.want, words(validation.AdviseTrainingJob(old, jobOf(t, "spec: "+tc.job)))); diff != "" {
				t.Errorf("advice (-want +got):\n%s", diff)
			}
		})
	}
	finished := jobOf(t, `spec: {framework: PyTorch, `+worker("", "")+`}`)
	suspended := finished.DeepCopy()
	*suspended.Spec.RunPolicy.Suspend = true
	if advice := validation.AdviseTrainingJob(finished, suspended); len(advice) > 0 {
		t.Errorf("advice on suspending a running job: %v", advice)
	}
	finished.Status.Phase = v1.PhaseSucceeded
	advice := words(validation.AdviseTrainingJob(finished, suspended))
	if len(advice) != 1 || !strings.HasPrefix(advice[0], "spec.runPolicy.suspend: Forbidden: has no effect") {
		t.Errorf("advice on suspending a finished job: %v", advice)
	}
	if advice := validation.AdviseTrainingJob(nil, nil); len(advice) > 0 {
		t.Errorf("advice on nothing: %v", advice)
	}
}
