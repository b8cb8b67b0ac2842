package webhooks

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-dev/penstock/webhooks/validation"
)

// Transitions gives what would keep the update of an object of Penstock's own
// kinds from being made though its object is good, in the paths of the kind and
// version that the request was made in.
func (g *Gate) Transitions(ctx context.Context, request *admissionv1.AdmissionRequest) ([]Cause, error) {
	kind, ok := g.kinds[groupKind(request)]
	if !ok || cannotMatter(request) {
		return nil, nil
	}
	found, err := kind.transitions(ctx, request)
	return causesOf(request, found), err
}

// transitions are the faults that are of the update rather than of its object.
func (k *typed[T]) transitions(ctx context.Context, request *admissionv1.AdmissionRequest) ([]fault, error) {
	errs, err := k.remaining(ctx, request)
	if err != nil {
		return nil, err
	}
	_, change, err := k.apart(ctx, request, errs)
	return toFaults(validation.Explain(validation.Distinct(change))), err
}

// apart parts the faults of an object from those of its update.
func (k *typed[T]) apart(ctx context.Context, request *admissionv1.AdmissionRequest, errs field.ErrorList) (own, change field.ErrorList, err error) {
	if len(errs) == 0 || request.Operation != admissionv1.Update {
		return errs, nil, nil
	}
	alone, err := k.errors(ctx, nil, request.Object.Raw, madeInHub(request))
	if err != nil {
		return nil, nil, err
	}
	own, change = validation.Apart(errs, alone)
	return own, change, nil
}

// remaining are the faults of an object, of an update those that are not
// tolerated.
func (k *typed[T]) remaining(ctx context.Context, request *admissionv1.AdmissionRequest) (field.ErrorList, error) {
	errs, err := k.errors(ctx, request.OldObject.Raw, request.Object.Raw, madeInHub(request))
	if err != nil || len(errs) == 0 || request.Operation != admissionv1.Update {
		return errs, err
	}
	return k.untolerated(ctx, request, errs)
}
