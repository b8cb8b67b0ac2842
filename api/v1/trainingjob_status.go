package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrainingJobStatus is what a training job is.
// +kubebuilder:validation:MinProperties=1
type TrainingJobStatus struct {
	// conditions of the job; the types are the TrainingJob…Condition constants.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// phase is the state of the job in one word.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// observedGeneration is the generation of the spec that this status was
	// made from.
	// +optional
	// +kubebuilder:validation:Minimum=1
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
	// +kubebuilder:validation:MaxItems=16
	Roles []RoleStatus `json:"roles,omitempty"`

	// rolesReady says in one word how many of the wanted pods are ready or
	// have succeeded: 3/4.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:MinLength=1
	RolesReady string `json:"rolesReady,omitempty"`

	// restarts is the sum of the restarts of all roles.
	// +optional
	Restarts *int32 `json:"restarts,omitempty"`

	// attempt is how often all pods were replaced together, for
	// runPolicy.restart Gang. Pods carry it as a label; those of an earlier
	// attempt are old.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Attempt *int32 `json:"attempt,omitempty"`

	// elastic is what the scale subresource shows.
	// +optional
	Elastic *ElasticStatus `json:"elastic,omitempty"`
}

// ElasticStatus is what the scale subresource shows of an elastic job.
type ElasticStatus struct {
	// replicas is the number of worker pods that there are.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// selector selects the worker pods, as a string.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:MinLength=1
	Selector string `json:"selector,omitempty"`
}

// Condition types of a TrainingJob and the reasons they carry.
const (
	// TrainingJobCreatedCondition is True once the job was first seen.
	// Reasons: JobCreated.
	TrainingJobCreatedCondition = "Created"
	// TrainingJobRunningCondition is True while the job does its work.
	// Reasons for True: JobRunning. For False: PodsPending, JobRestarting,
	// JobSuspended, JobSucceeded, JobFailed.
	TrainingJobRunningCondition = "Running"
	// TrainingJobRestartingCondition is True while a failed pod is being
	// replaced, until all pods run again. Reasons for True: PodFailed, and
	// GangRestarting where all pods are replaced for one. For False: the reason
	// of the Running condition.
	TrainingJobRestartingCondition = "Restarting"
	// TrainingJobSuspendedCondition is True while the job is suspended.
	// Reasons: JobSuspended, JobResumed.
	TrainingJobSuspendedCondition = SuspendedCondition
	// TrainingJobSucceededCondition is True once the job has succeeded. It is
	// final. Reasons: JobSucceeded.
	TrainingJobSucceededCondition = "Succeeded"
	// TrainingJobFailedCondition is True once the job has failed. It is final.
	// Reasons: PodFailed, BackoffLimitExceeded, DeadlineExceeded, PodsMissing.
	TrainingJobFailedCondition = "Failed"
	// TrainingJobGangScheduledCondition says whether the pods of a job with
	// spec.gang are placed all together. Reasons for True: GangScheduled. For
	// False: GangPending, GangNotSupported where no gang scheduler is there, and
	// PodsNotInGroup where the pods are of no pod group.
	TrainingJobGangScheduledCondition = GangScheduledCondition
	// TrainingJobInvalidCondition is True while not all pods can be made from the
	// job. Reasons for True: those of InvalidCondition.
	// For False: Valid.
	TrainingJobInvalidCondition = InvalidCondition
)

// Reasons of TrainingJob conditions.
const (
	TrainingJobCreatedReason              = "JobCreated"
	TrainingJobRunningReason              = "JobRunning"
	TrainingJobPodsPendingReason          = "PodsPending"
	TrainingJobRestartingReason           = "JobRestarting"
	TrainingJobGangRestartingReason       = "GangRestarting"
	TrainingJobSuspendedReason            = "JobSuspended"
	TrainingJobResumedReason              = "JobResumed"
	TrainingJobSucceededReason            = "JobSucceeded"
	TrainingJobFailedReason               = "JobFailed"
	TrainingJobPodFailedReason            = "PodFailed"
	TrainingJobBackoffLimitExceededReason = "BackoffLimitExceeded"
	TrainingJobDeadlineExceededReason     = "DeadlineExceeded"
	// TrainingJobPodsMissingReason says that the pods that decide have succeeded
	// while others could not be made.
	TrainingJobPodsMissingReason   = "PodsMissing"
	TrainingJobInvalidSpecReason   = InvalidSpecReason
	TrainingJobValidReason         = ValidReason
	TrainingJobChildNotOwnedReason = ChildNotOwnedReason
)
