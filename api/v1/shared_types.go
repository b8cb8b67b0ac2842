package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// RoleName names a role within its workload: in the case that the framework's
// own documentation uses, as Master, Worker and PS, or as its author likes where
// roles are groups of his own.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$`
type RoleName string

// RestartPolicy says what happens to a role's pod when its main container has ended.
// +kubebuilder:validation:Enum=Always;OnFailure;Never;ExitCode
type RestartPolicy string

const (
	// RestartAlways restarts the container whatever its exit code.
	RestartAlways RestartPolicy = "Always"
	// RestartOnFailure restarts the container when its exit code is not 0.
	RestartOnFailure RestartPolicy = "OnFailure"
	// RestartNever never restarts; a failed pod fails the workload.
	RestartNever RestartPolicy = "Never"
	// RestartExitCode replaces the pod when the main container's exit code is
	// 128 or more (killed by a signal, out of memory, node lost) and fails the
	// workload below that.
	RestartExitCode RestartPolicy = "ExitCode"
)

// LabelKey is a node label key, such as topology.kubernetes.io/rack.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=317
type LabelKey string

// Role is a group of equal pods within a workload.
type Role struct {
	// name of the role, unique within the workload.
	// +required
	Name RoleName `json:"name,omitempty"`

	// replicas is the number of pods of this role, or of units of several pods
	// where the kind has such; 1 when left out, unless the kind says otherwise.
	// For the role that spec.elastic scales, spec.elastic.replicas overrides it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Replicas *int32 `json:"replicas,omitempty"`

	// restartPolicy says what happens when the main container of a pod has
	// ended: Always, OnFailure, Never or ExitCode. The kind decides the default
	// and which there are. It takes the place of the template's own restartPolicy.
	// +optional
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`

	// topology asks for all pods of this role in one domain.
	// +optional
	Topology *Topology `json:"topology,omitempty"`

	// template of the pods of this role.
	// +required
	Template corev1.PodTemplateSpec `json:"template,omitzero"`
}

// Topology is the wish that pods run in one domain: on nodes that share the
// value of one label. Exactly one of its fields is set.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type Topology struct {
	// required is the key of the node label that all pods must share; they
	// wait until one domain has room.
	// +optional
	Required LabelKey `json:"required,omitempty"`

	// preferred is the key of the node label that the pods should share.
	// +optional
	Preferred LabelKey `json:"preferred,omitempty"`
}

// CleanPodPolicy says which pods go when a workload has finished.
// +kubebuilder:validation:Enum=All;Running;None
type CleanPodPolicy string

const (
	// CleanPodAll deletes every pod.
	CleanPodAll CleanPodPolicy = "All"
	// CleanPodRunning deletes the pods that have not finished, so that the
	// logs of finished ones can still be read.
	CleanPodRunning CleanPodPolicy = "Running"
	// CleanPodNone deletes nothing.
	CleanPodNone CleanPodPolicy = "None"
)

// RestartScope says how much is restarted when a pod fails.
// +kubebuilder:validation:Enum=Pod;Gang
type RestartScope string

const (
	// RestartPod restarts the pod that failed and leaves its peers running.
	RestartPod RestartScope = "Pod"
	// RestartGang replaces every pod of the workload when one fails or is
	// lost, once all old ones are gone.
	RestartGang RestartScope = "Gang"
)

// RunPolicy bounds how long and how often a workload runs.
// +kubebuilder:validation:MinProperties=0
type RunPolicy struct {
	// suspend stops the workload: its pods are deleted, its status is kept.
	// False when left out.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// activeDeadlineSeconds is how long the workload may run, in seconds, from
	// its start or its last resumption; it fails at that instant.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// backoffLimit is the number of restarts, over all roles, that the workload
	// may use up, in place and by new pods alike; it fails when it would need
	// one more. Pods lost to their node do not count. No limit when left out.
	// +optional
	// +kubebuilder:validation:Minimum=0
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`

	// restart says how much is restarted when a pod fails and its role's
	// restartPolicy restarts it: Pod, or Gang for the workload as a whole, as
	// collective frameworks need whose processes cannot join again one by one.
	// A restart of the gang counts once against backoffLimit. Pod when left
	// out. It can change while the workload is suspended.
	// +optional
	Restart RestartScope `json:"restart,omitempty"`

	// ttlSecondsAfterFinished is how long the finished workload is kept, in
	// seconds, before it is deleted; for ever when left out.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// cleanPodPolicy says which pods go when the workload has finished: All,
	// Running or None. None when left out.
	// +optional
	CleanPodPolicy CleanPodPolicy `json:"cleanPodPolicy,omitempty"`

	// managedBy names the controller that reconciles the workload, as a
	// domain-prefixed path; penstock.dev/manager, or leaving it out, means
	// Penstock. It cannot change.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ManagedBy *string `json:"managedBy,omitempty"`
}

// ServicePolicy is the part of RunPolicy that means something for a workload
// without an end.
// +kubebuilder:validation:MinProperties=0
type ServicePolicy struct {
	// suspend stops the workload: its pods are deleted, its status is kept.
	// False when left out.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// managedBy names the controller that reconciles the workload, as a
	// domain-prefixed path; penstock.dev/manager, or leaving it out, means
	// Penstock. It cannot change.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ManagedBy *string `json:"managedBy,omitempty"`
}

// Gang asks that the workload's pods are scheduled all together or not at all.
// +kubebuilder:validation:MinProperties=0
type Gang struct {
	// minAvailable is the number of pods that must be placeable before any is
	// placed; all of them when left out.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// queueName is the queue of the gang scheduler. It cannot change.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:MinLength=1
	QueueName string `json:"queueName,omitempty"`

	// priorityClassName is the priority of the gang as a whole.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:MinLength=1
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// scheduler is the name of the scheduler that places the gang.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:MinLength=1
	Scheduler string `json:"scheduler,omitempty"`

	// minResources is what must be free before any pod is placed; the sum over
	// minAvailable pods when left out.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	MinResources map[corev1.ResourceName]resource.Quantity `json:"minResources,omitempty"`

	// scheduleTimeoutSeconds is how long the scheduler may try, in seconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`

	// topology asks for all pods of the gang in one domain.
	// +optional
	Topology *Topology `json:"topology,omitempty"`
}

// Phase is the one word that people print for the state of a workload.
// Conditions hold the state; phase only repeats it.
// +kubebuilder:validation:Enum=Pending;Creating;Running;Scaling;Restarting;Upgrading;Suspended;Succeeded;Failed;Deleting
type Phase string

const (
	// PhasePending means that nothing was made yet.
	PhasePending Phase = "Pending"
	// PhaseCreating means that pods were made and not all run yet.
	PhaseCreating Phase = "Creating"
	// PhaseRunning means that the workload does its work.
	PhaseRunning Phase = "Running"
	// PhaseScaling means that pods are being added or removed.
	PhaseScaling Phase = "Scaling"
	// PhaseRestarting means that a failed pod is being replaced.
	PhaseRestarting Phase = "Restarting"
	// PhaseUpgrading means that pods are being replaced by a new template.
	PhaseUpgrading Phase = "Upgrading"
	// PhaseSuspended means that the workload is stopped and can be resumed.
	PhaseSuspended Phase = "Suspended"
	// PhaseSucceeded means that the workload has done its work. It is final.
	PhaseSucceeded Phase = "Succeeded"
	// PhaseFailed means that the workload has failed. It is final.
	PhaseFailed Phase = "Failed"
	// PhaseDeleting means that the workload was deleted and stays until something
	// is cleaned up.
	PhaseDeleting Phase = "Deleting"
)

// RoleStatus counts the pods of one role.
type RoleStatus struct {
	// name of the role.
	// +required
	Name RoleName `json:"name,omitempty"`

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

	// restarts is how often pods of this role were restarted, in place or by a
	// new pod, since the workload started. It never goes down while the
	// workload runs and starts anew when it is resumed.
	// +optional
	Restarts *int32 `json:"restarts,omitempty"`

	// completedIndexes are the indices of the pods that have done their work,
	// as in the status of a batch/v1 Job: 0,3-5. They are not run again when
	// their pods are deleted. Of roles whose pods serve the others until the
	// end there are none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100000
	CompletedIndexes string `json:"completedIndexes,omitempty"`

	// observed holds how many restarts of each existing pod are already in
	// restarts, so that what was counted once is never counted again: those in
	// place, and one more when the pod is being replaced.
	// +optional
	// +listType=map
	// +listMapKey=uid
	// +kubebuilder:validation:MaxItems=10000
	Observed []ObservedRestarts `json:"observed,omitempty"`
}

// ObservedRestarts is how many restarts of one pod were counted.
type ObservedRestarts struct {
	// uid of the pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`

	// count of restarts that are already in the role's restarts.
	// +required
	Count *int32 `json:"count,omitempty"`
}

// Common condition types of workloads. Each workload kind says which reasons
// they carry.
const (
	// SuspendedCondition is True while the workload is suspended.
	SuspendedCondition = "Suspended"
	// InvalidCondition is True while not all pods can be made from the workload,
	// for a reason that only a change of the workload or its surroundings can
	// mend. Reasons for True: InvalidSpec, ChildNotOwned, ChildRejected,
	// ChildForbidden. For False: Valid.
	InvalidCondition = "Invalid"
)

// Reasons of InvalidCondition.
const (
	// InvalidSpecReason says that the stored spec breaks an invariant.
	InvalidSpecReason = "InvalidSpec"
	// ChildNotOwnedReason says that the name of a child is taken by an object
	// that the workload does not own.
	ChildNotOwnedReason = "ChildNotOwned"
	// ChildRejectedReason says that the API server refuses a child as invalid.
	ChildRejectedReason = "ChildRejected"
	// ChildForbiddenReason says that a quota or the admission of pods, such as a
	// policy, a missing service account or priority class, keeps a child from
	// being made.
	ChildForbiddenReason = "ChildForbidden"
	// ValidReason says that nothing of that is so any more.
	ValidReason = "Valid"
)

// Condition of workloads with spec.gang, and its reasons.
const (
	// GangScheduledCondition says whether the pods of a workload with spec.gang
	// are placed all together. Reasons for True: GangScheduled. For False:
	// GangPending, GangNotSupported where no gang scheduler is there, and
	// PodsNotInGroup where the pods were made before one was.
	GangScheduledCondition = "GangScheduled"

	GangScheduledReason   = "GangScheduled"
	GangPendingReason     = "GangPending"
	GangUnsupportedReason = "GangNotSupported"
	GangUngroupedReason   = "PodsNotInGroup"
)
