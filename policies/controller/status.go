package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

// loaderLag is how long the loader may take to compile a policy.
const loaderLag = 200 * time.Millisecond

// maxMessage bounds the message of a condition; the API allows 32 KiB.
const maxMessage = 8 << 10

// status writes into each policy whether it compiled. Compiling gives the same
// on every replica, so the leader speaks for all.
type status struct {
	client client.Client
	engine *policies.Engine
}

func setupStatus(mgr ctrl.Manager, engine *policies.Engine) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("policy-status").
		For(&v1.WorkloadPolicy{}).
		Complete(&status{client: mgr.GetClient(), engine: engine})
	if err != nil {
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
	if state.Generation != policy.Generation {
		// The loader has not come to this generation yet.
		return reconcile.Result{RequeueAfter: loaderLag}, nil
	}
	wanted := policy.DeepCopy()
	wanted.Status.ObservedGeneration = policy.Generation
	wanted.Status.EnforcedGeneration = state.Enforced
	apimeta.SetStatusCondition(&wanted.Status.Conditions, compiled(&policy, state.Err))
	if equality.Semantic.DeepEqual(policy.Status, wanted.Status) {
		return reconcile.Result{}, nil
	}
	if err := s.client.Status().Patch(ctx, wanted, client.MergeFrom(&policy)); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("failed to write the status of the policy: %w", err))
	}
	return reconcile.Result{}, nil
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
