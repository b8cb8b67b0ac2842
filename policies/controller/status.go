package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/stored"
)

// loaderLag is how long the loader may take to compile a policy.
const loaderLag = 200 * time.Millisecond

// maxMessage bounds the message of a condition; the API allows 32 KiB.
const maxMessage = 8 << 10

// status writes into each policy whether it compiled. Compiling gives the same
// on every replica, so the leader speaks for all.
type status struct {
	client    client.Client
	engine    *policies.Engine
	coverages *coverages
	inventory *Inventory
	// audit is nil where nothing is audited.
	audit Audit
}

func setupStatus(mgr ctrl.Manager, s *status, changed <-chan event.GenericEvent) error {
	watching := ctrl.NewControllerManagedBy(mgr).
		Named("policy-status").
		For(&v1.WorkloadPolicy{}).
		WatchesRawSource(source.Channel(changed, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(s.inventory.changed, &handler.EnqueueRequestForObject{}))
	if s.audit != nil {
		watching = watching.WatchesRawSource(source.Channel(s.audit.Changed(), &handler.EnqueueRequestForObject{}))
	}
	if err := watching.Complete(s); err != nil {
		return fmt.Errorf("failed to set up the status of policies: %w", err)
	}
	return nil
}

// Reconcile writes the status of one policy if it changed.
func (s *status) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var policy v1.WorkloadPolicy
	if err := s.client.Get(ctx, request.NamespacedName, &policy); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	state := s.state(policy.Name)
	if state.Generation != policy.Generation || state.UID != policy.UID {
		// The loader has not come to this generation yet, or not to this policy
		// after another one of its name.
		return reconcile.Result{RequeueAfter: loaderLag}, nil
	}
	wanted := policy.DeepCopy()
	wanted.Status.ObservedGeneration = policy.Generation
	wanted.Status.EnforcedGeneration = state.Enforced
	apimeta.SetStatusCondition(&wanted.Status.Conditions, compiled(&policy, state.Err))
	if coverage, known, confirmed, fault := s.coverages.of(policy.Name); known {
		if coverage.Generation == policy.Generation {
			wanted.Status.Exclusions = coverage.Exclusions
		}
		apimeta.SetStatusCondition(&wanted.Status.Conditions, enforced(&policy, state, coverage, confirmed, fault))
	}
	s.addAudit(&policy, wanted, state)
	result := s.addInventory(&policy, wanted)
	if equality.Semantic.DeepEqual(policy.Status, wanted.Status) {
		return result, nil
	}
	if err := s.client.Status().Patch(ctx, wanted, client.MergeFrom(&policy)); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("failed to write the status of the policy: %w", err))
	}
	return result, nil
}

// addAudit adds the results of the audit, which decides when to write others.
// What an earlier leader wrote stands until there are some.
func (s *status) addAudit(policy, wanted *v1.WorkloadPolicy, state policies.PolicyState) {
	if s.audit == nil {
		wanted.Status.Audit = v1.PolicyAudit{}
	} else if result, known := s.audit.Result(policy); known {
		wanted.Status.Audit = result
	}
	if s.audit == nil || state.Enforced == 0 {
		apimeta.RemoveStatusCondition(&wanted.Status.Conditions, v1.WorkloadPolicyAuditedCondition)
		return
	}
	apimeta.SetStatusCondition(&wanted.Status.Conditions, auditedCondition(policy, &wanted.Status.Audit, state))
}

// auditedCondition says whether the results of the audit are those of the policy
// in force.
func auditedCondition(policy *v1.WorkloadPolicy, audit *v1.PolicyAudit, state policies.PolicyState) metav1.Condition {
	condition := metav1.Condition{Type: v1.WorkloadPolicyAuditedCondition, ObservedGeneration: policy.Generation}
	switch {
	case state.Spec != nil && !stored.JudgedBy(state.Spec):
		condition.Status, condition.Reason = metav1.ConditionFalse, v1.WorkloadPolicyNothingStoredReason
		condition.Message = "The policy judges neither creations nor updates, so that there is nothing to say of stored objects."
	case audit.ObservedGeneration == state.Enforced && incomplete(audit) != "":
		condition.Status, condition.Reason = metav1.ConditionFalse, v1.WorkloadPolicyAuditIncompleteReason
		condition.Message = stored.Shorten(incomplete(audit), maxMessage)
	case audit.ObservedGeneration == state.Enforced:
		condition.Status, condition.Reason = metav1.ConditionTrue, v1.WorkloadPolicyAuditedReason
		condition.Message = "All stored objects that the policy is asked about are judged."
	default:
		condition.Status, condition.Reason = metav1.ConditionUnknown, v1.WorkloadPolicyAuditingReason
		condition.Message = "Stored objects are being judged. There are no results yet."
		if audit.ObservedGeneration > 0 {
			condition.Message = fmt.Sprintf("Stored objects are being judged. The results are those of generation %d.", audit.ObservedGeneration)
		}
	}
	return condition
}

// incomplete says what an audit could not judge; empty if it judged all.
func incomplete(audit *v1.PolicyAudit) string {
	var lacks []string
	if unjudged := ptr.Deref(audit.Errors, 0) + ptr.Deref(audit.NotEvaluated, 0); unjudged > 0 {
		lacks = append(lacks, fmt.Sprintf("%d of %d stored objects are not judged: %s.", unjudged, ptr.Deref(audit.Judged, 0)+unjudged, audit.Message))
	}
	if len(audit.Unseen) > 0 {
		var unseen []string
		for _, one := range audit.Unseen {
			unseen = append(unseen, fmt.Sprintf("%s (%s)", one.Subject, one.Reason))
		}
		lacks = append(lacks, "Not looked at are stored objects of "+strings.Join(unseen, ", ")+".")
	}
	return strings.Join(lacks, " ")
}

// addInventory adds the condition of the inventory, for policies that read one.
// One that says that something is missing is looked at again.
func (s *status) addInventory(policy, wanted *v1.WorkloadPolicy) reconcile.Result {
	if len(policy.Spec.Inventory) == 0 {
		apimeta.RemoveStatusCondition(&wanted.Status.Conditions, v1.WorkloadPolicyInventorySyncedCondition)
		return reconcile.Result{}
	}
	kind, state := s.inventory.stateOf(policy)
	apimeta.SetStatusCondition(&wanted.Status.Conditions, inventorySyncedCondition(policy, kind, state))
	if state.synced {
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: inventoryRetry}
}

// inventorySyncedCondition says whether a policy has the objects that it reads;
// state is that of the first kind that is missing.
func inventorySyncedCondition(policy *v1.WorkloadPolicy, kind schema.GroupVersionKind, state inventoryState) metav1.Condition {
	condition := metav1.Condition{
		Type: v1.WorkloadPolicyInventorySyncedCondition, Status: metav1.ConditionTrue, ObservedGeneration: policy.Generation,
		Reason: v1.WorkloadPolicyInventorySyncedReason, Message: "All objects that the rule reads are there.",
	}
	if state.synced {
		return condition
	}
	apiVersion, name := kind.ToAPIVersionAndKind()
	condition.Status, condition.Reason = metav1.ConditionFalse, cmp.Or(state.reason, v1.WorkloadPolicyInventorySyncingReason)
	condition.Message = stored.Shorten(fmt.Sprintf("The objects of kind %s (%s) are not there: %s. Requests are answered by the failure policy.",
		name, apiVersion, cmp.Or(state.message, "they are being read")), maxMessage)
	return condition
}

func (s *status) state(name string) policies.PolicyState {
	for _, state := range s.engine.Snapshot().Policies() {
		if state.Name == name {
			return state
		}
	}
	return policies.PolicyState{}
}

func compiled(policy *v1.WorkloadPolicy, fault error) metav1.Condition {
	condition := metav1.Condition{
		Type:               v1.WorkloadPolicyCompiledCondition,
		Status:             metav1.ConditionTrue,
		ObservedGeneration: policy.Generation,
		Reason:             v1.WorkloadPolicyCompiledReason,
		Message:            "The rule is in force.",
	}
	if fault == nil {
		return condition
	}
	condition.Status = metav1.ConditionFalse
	condition.Reason = v1.WorkloadPolicyCompileFailedReason
	if compileError, ok := errors.AsType[*policies.CompileError](fault); ok && len(compileError.Rego) == 0 {
		condition.Reason = v1.WorkloadPolicyInvalidSpecReason
	}
	condition.Message = fault.Error()
	if len(condition.Message) > maxMessage {
		// A character that is cut in two would be stored as another one.
		condition.Message = strings.ToValidUTF8(condition.Message[:maxMessage], "") + " …"
	}
	return condition
}

// enforced says whether the API server asks about what the policy matches. A
// policy that is enforced stays so while the configuration changes for others.
func enforced(policy *v1.WorkloadPolicy, state policies.PolicyState, coverage Coverage, confirmed bool, fault error) metav1.Condition {
	condition := metav1.Condition{
		Type:               v1.WorkloadPolicyEnforcedCondition,
		Status:             metav1.ConditionFalse,
		ObservedGeneration: policy.Generation,
	}
	was := apimeta.FindStatusCondition(policy.Status.Conditions, v1.WorkloadPolicyEnforcedCondition)
	absent := strings.Join(coverage.Absent, ", ")
	switch {
	case state.Enforced == 0:
		condition.Reason = v1.WorkloadPolicyNotCompiledReason
		condition.Message = "No version of the rule has compiled: requests are answered by the failure policy."
	case fault != nil:
		condition.Reason = v1.WorkloadPolicyConfigurationFailedReason
		condition.Message = fault.Error()
	case coverage.Generation != policy.Generation:
		condition.Status, condition.Reason = metav1.ConditionUnknown, v1.WorkloadPolicyPendingReason
		condition.Message = "The webhook configuration is about to follow the policy."
	case !coverage.Static && !coverage.Dynamic && absent != "":
		condition.Reason = v1.WorkloadPolicyKindsNotServedReason
		condition.Message = "The API server serves none of the kinds: " + absent + ". The policy comes into force when they are installed."
	case !coverage.Static && !coverage.Dynamic:
		condition.Reason = v1.WorkloadPolicyExcludedReason
		condition.Message = "All that the policy matches is excluded; see status.exclusions."
	case coverage.Dynamic && !confirmed && (was == nil || was.Status != metav1.ConditionTrue || was.ObservedGeneration != policy.Generation):
		condition.Status, condition.Reason = metav1.ConditionUnknown, v1.WorkloadPolicyPendingReason
		condition.Message = "No probe has come through the webhook configuration yet."
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, v1.WorkloadPolicyEnforcedReason
		condition.Message = askedAbout(coverage)
	}
	return condition
}

// askedAbout says what the API server asks an enforced policy about, and what not.
func askedAbout(coverage Coverage) string {
	text := "The API server asks about what the policy matches."
	if len(coverage.Absent) > 0 {
		text = "The API server asks about what the policy matches, but for kinds that it does not serve: " + strings.Join(coverage.Absent, ", ") + "."
	}
	if coverage.Unasked {
		text += " Some of the subresources come with none of match.operations, so that it never asks about them; see status.exclusions."
	}
	return text
}
