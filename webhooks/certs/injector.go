package certs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"k8s.io/apimachinery/pkg/fields"
)

// PartOfLabel marks the objects that belong to Penstock's installation. The
// self-managed source writes its CA bundle into the webhook configurations and
// CustomResourceDefinitions that carry it with the value PartOfValue.
const (
	PartOfLabel = "app.kubernetes.io/part-of"
	PartOfValue = "penstock"
)

// An Injector writes the CA bundle of a self-managed source into everything
// that calls the webhooks, and tells the source when all of it has it. It runs
// on every replica; what they write is the same.
type Injector struct {
	client client.Client
	secret types.NamespacedName
	source *SelfManaged
}

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,verbs=get;list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,resourceNames=penstock,verbs=update
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=rayclusters.penstock.dev;trainingjobs.penstock.dev,verbs=update
// +kubebuilder:rbac:groups="",namespace=penstock-system,resources=secrets,verbs=get;list;watch;create;update

// CacheOptions narrows a manager's cache to the objects that an Injector reads.
func CacheOptions(secret types.NamespacedName) map[client.Object]cache.ByObject {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{PartOfLabel: PartOfValue})}
	return map[client.Object]cache.ByObject{
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: ours,
		&admissionregistrationv1.MutatingWebhookConfiguration{}:   ours,
		&apiextensionsv1.CustomResourceDefinition{}:               ours,
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{
			secret.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", secret.Name)},
		}},
	}
}

// SetupInjector adds the injector of a source to a manager.
func SetupInjector(mgr ctrl.Manager, secret types.NamespacedName, source *SelfManaged) error {
	injector := &Injector{client: mgr.GetClient(), secret: secret, source: source}
	everyReplica := false
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: secret}}
	})
	ours := builder.WithPredicates(predicate.NewPredicateFuncs(func(object client.Object) bool {
		return object.GetLabels()[PartOfLabel] == PartOfValue
	}))
	return ctrl.NewControllerManagedBy(mgr).
		Named("ca-injector").
		For(&corev1.Secret{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(object client.Object) bool {
			return client.ObjectKeyFromObject(object) == secret
		}))).
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, one, ours).
		Watches(&admissionregistrationv1.MutatingWebhookConfiguration{}, one, ours).
		Watches(&apiextensionsv1.CustomResourceDefinition{}, one, ours).
		WithOptions(controller.Options{NeedLeaderElection: &everyReplica}).
		Complete(injector)
}

// Reconcile writes the bundle wherever it is missing.
func (i *Injector) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var secret corev1.Secret
	if err := i.client.Get(ctx, i.secret, &secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	authority := secret.Data[corev1.TLSCertKey]
	if len(authority) == 0 {
		return reconcile.Result{}, nil
	}
	targets, err := i.targets(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	written, failures := true, []error{}
	for _, target := range targets {
		changed := false
		for _, bundle := range target.bundles {
			// Who wiped a bundle wiped older authorities too, whose leaves others may serve.
			known := slices.Concat(*bundle, []byte("\n"), i.source.known())
			if wanted := withAuthority(known, authority, time.Now()); !bytes.Equal(*bundle, wanted) {
				*bundle, changed = wanted, true
			}
		}
		if !changed {
			continue
		}
		written = false
		if err := i.client.Update(ctx, target.object); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			failures = append(failures, fmt.Errorf("failed to write the CA bundle into %s %s: %w", target.kind, target.object.GetName(), err))
		}
	}
	// What was just written comes back as an event, and then all of it has it.
	if written {
		i.source.trust(authority)
	}
	return reconcile.Result{}, errors.Join(failures...)
}

// A target is an object that calls the webhooks, with where its bundles are.
type target struct {
	kind    string
	object  client.Object
	bundles []*[]byte
}

func (i *Injector) targets(ctx context.Context) ([]target, error) {
	var targets []target
	var validating admissionregistrationv1.ValidatingWebhookConfigurationList
	if err := i.list(ctx, &validating); err != nil {
		return nil, err
	}
	for n := range validating.Items {
		item := validating.Items[n].DeepCopy()
		t := target{kind: "ValidatingWebhookConfiguration", object: item}
		for w := range item.Webhooks {
			t.bundles = append(t.bundles, &item.Webhooks[w].ClientConfig.CABundle)
		}
		targets = append(targets, t)
	}
	var mutating admissionregistrationv1.MutatingWebhookConfigurationList
	if err := i.list(ctx, &mutating); err != nil {
		return nil, err
	}
	for n := range mutating.Items {
		item := mutating.Items[n].DeepCopy()
		t := target{kind: "MutatingWebhookConfiguration", object: item}
		for w := range item.Webhooks {
			t.bundles = append(t.bundles, &item.Webhooks[w].ClientConfig.CABundle)
		}
		targets = append(targets, t)
	}
	var definitions apiextensionsv1.CustomResourceDefinitionList
	if err := i.list(ctx, &definitions); err != nil {
		return nil, err
	}
	for n := range definitions.Items {
		item := definitions.Items[n].DeepCopy()
		if conversion := item.Spec.Conversion; conversion != nil && conversion.Webhook != nil && conversion.Webhook.ClientConfig != nil {
			targets = append(targets, target{
				kind:    "CustomResourceDefinition",
				object:  item,
				bundles: []*[]byte{&conversion.Webhook.ClientConfig.CABundle},
			})
		}
	}
	return targets, nil
}

func (i *Injector) list(ctx context.Context, list client.ObjectList) error {
	if err := i.client.List(ctx, list, client.MatchingLabels{PartOfLabel: PartOfValue}); err != nil {
		return fmt.Errorf("failed to list what calls the webhooks: %w", err)
	}
	return nil
}
