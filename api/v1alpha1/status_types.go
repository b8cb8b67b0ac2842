package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TrainingJobStatus is what a training job is. It has the shape of v1; see
// there for the meaning of the fields.
type TrainingJobStatus struct {
	// conditions of the job.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// phase is the state of the job in one word.
	// +optional
	Phase string `json:"phase,omitempty"`

	// observedGeneration is the generation of the spec that this status was
	// made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// startTime is when the job was started, or resumed last.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the job succeeded or failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// roles count the pods of each role.
	// +optional
	// +listType=map
	// +listMapKey=name
	Roles []RoleStatus `json:"roles,omitempty"`

	// rolesReady says in one word how many of the wanted pods are ready.
	// +optional
	RolesReady string `json:"rolesReady,omitempty"`

	// restarts is the sum of the restarts of all roles.
	// +optional
	Restarts *int32 `json:"restarts,omitempty"`

	// attempt is how often all pods were replaced together.
	// +optional
	Attempt *int32 `json:"attempt,omitempty"`

	// elastic is what the scale subresource shows.
	// +optional
	Elastic *ElasticStatus `json:"elastic,omitempty"`
}

// RoleStatus counts the pods of one role.
type RoleStatus struct {
	// name of the role.
	// +required
	Name string `json:"name,omitempty"`

	// replicas is the number of pods that are wanted.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// active is the number of pods that are running.
	// +optional
	Active *int32 `json:"active,omitempty"`

	// ready is the number of pods that are running and ready.
	// +optional
	Ready *int32 `json:"ready,omitempty"`

	// succeeded is the number of pods that have ended well.
	// +optional
	Succeeded *int32 `json:"succeeded,omitempty"`

	// failed is the number of pods that have failed and are not being replaced.
	// +optional
	Failed *int32 `json:"failed,omitempty"`

	// restarts is how often pods of this role were restarted.
	// +optional
	Restarts *int32 `json:"restarts,omitempty"`

	// completedIndexes are the indices of the pods that have done their work.
	// +optional
	CompletedIndexes string `json:"completedIndexes,omitempty"`

	// observed holds the restart count last seen of each pod.
	// +optional
	// +listType=map
	// +listMapKey=uid
	Observed []ObservedRestarts `json:"observed,omitempty"`
}

// ObservedRestarts is how often the containers of one pod were seen to restart.
type ObservedRestarts struct {
	// uid of the pod.
	// +required
	UID string `json:"uid,omitempty"`

	// count of restarts that are already in the role's restarts.
	// +optional
	Count *int32 `json:"count,omitempty"`
}

// ElasticStatus is what the scale subresource shows of an elastic job.
type ElasticStatus struct {
	// replicas is the number of worker pods that there are.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// selector selects the worker pods, as a string.
	// +optional
	Selector string `json:"selector,omitempty"`
}
