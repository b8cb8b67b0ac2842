package controller

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/stored"
)

const (
	// StaticConfiguration is the webhook configuration of Penstock's own kinds,
	// which is installed.
	StaticConfiguration = "penstock"
	// PolicyConfiguration is the one that follows the policies, which is owned
	// at run time.
	PolicyConfiguration = "penstock-policies"

	// probeRetry is how soon to probe again: an API server takes a change up
	// within milliseconds as a rule.
	probeRetry = 200 * time.Millisecond
	// rulesPeriod is how often to look without a reason.
	rulesPeriod = 5 * time.Minute
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=penstock-policies,verbs=update;delete
// +kubebuilder:rbac:groups="",namespace=penstock-system,resources=configmaps,verbs=create
// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets;statefulsets,verbs=get
// +kubebuilder:rbac:groups="",resources=replicationcontrollers,verbs=get
// +kubebuilder:rbac:groups=kubeflow.org,resources=jaxjobs;paddlejobs;pytorchjobs,verbs=get

// A configurer keeps the webhook configuration at what the policies match. Only
// the leader does.
type configurer struct {
	client    client.Client
	mapper    stored.KindMapper
	options   RulesOptions
	coverages *coverages
	// changed tells that the status of policies may have to follow.
	changed chan event.GenericEvent
	// confirmed is the fingerprint that a probe came through with.
	confirmed string
}

// setupConfigurer adds a configurer to a manager.
func setupConfigurer(mgr ctrl.Manager, c *configurer) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: PolicyConfiguration}}}
	})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("policy-webhooks").
		Watches(&v1.WorkloadPolicy{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, all, builder.WithPredicates(predicate.NewPredicateFuncs(func(object client.Object) bool {
			return object.GetName() == StaticConfiguration || object.GetName() == PolicyConfiguration
		}))).
		Complete(c)
	if err != nil {
		return fmt.Errorf("failed to set up the webhook configuration of the policies: %w", err)
	}
	return nil
}

// Reconcile writes the configuration if it is not as it should be, and probes
// until the API server works by it.
func (c *configurer) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	wanted, coverages, err := c.configure(ctx)
	if err != nil {
		c.tell(ctx, coverages, false, err)
		return reconcile.Result{}, err
	}
	confirmed, err := c.probe(ctx, wanted)
	c.tell(ctx, coverages, confirmed, err)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case !confirmed:
		return reconcile.Result{RequeueAfter: probeRetry}, nil
	case slices.ContainsFunc(slices.Collect(maps.Values(coverages)), func(one Coverage) bool { return one.Awaited || one.Installed || len(one.Absent) > 0 }):
		return reconcile.Result{RequeueAfter: stored.ServedRetry}, nil
	default:
		return reconcile.Result{RequeueAfter: rulesPeriod}, nil
	}
}

// tell has the status of the policies written if there is news for it.
func (c *configurer) tell(ctx context.Context, byPolicy map[string]Coverage, confirmed bool, fault error) {
	if !c.coverages.set(byPolicy, confirmed, fault) {
		return
	}
	for name := range byPolicy {
		policy := &v1.WorkloadPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		select {
		case c.changed <- event.GenericEvent{Object: policy}:
		case <-ctx.Done():
			return
		}
	}
}

// configure brings the configuration to what it should be, and returns the
// webhooks that it has then.
func (c *configurer) configure(ctx context.Context) ([]admissionregistrationv1.ValidatingWebhook, map[string]Coverage, error) {
	var list v1.WorkloadPolicyList
	if err := c.client.List(ctx, &list); err != nil {
		return nil, nil, fmt.Errorf("failed to list the policies: %w", err)
	}
	all := make([]*v1.WorkloadPolicy, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	var static admissionregistrationv1.ValidatingWebhookConfiguration
	if err := c.client.Get(ctx, client.ObjectKey{Name: StaticConfiguration}, &static); err != nil {
		return nil, nil, fmt.Errorf("failed to read how Penstock's own webhooks are called: %w", err)
	}
	options := c.options
	caller, err := callerOf(&static)
	if err != nil {
		return nil, nil, err
	}
	options.Client = caller
	webhooks, coverages, err := Rules(all, c.mapper, options)
	if err != nil {
		return nil, coverages, err
	}
	return webhooks, coverages, c.write(ctx, &static, webhooks)
}

// callerOf gives how webhooks beside those of a configuration are called: at the
// same Service or URL.
func callerOf(static *admissionregistrationv1.ValidatingWebhookConfiguration) (func(path string) admissionregistrationv1.WebhookClientConfig, error) {
	if len(static.Webhooks) == 0 {
		return nil, fmt.Errorf("ValidatingWebhookConfiguration %s has no webhooks: install Penstock again", static.Name)
	}
	base := static.Webhooks[0].ClientConfig
	if base.URL != nil {
		if _, err := url.Parse(*base.URL); err != nil {
			return nil, fmt.Errorf("the URL in ValidatingWebhookConfiguration %s is none: %w", static.Name, err)
		}
	}
	return func(path string) admissionregistrationv1.WebhookClientConfig {
		called := *base.DeepCopy()
		switch {
		case called.Service != nil:
			called.Service.Path = &path
		case called.URL != nil:
			// It was parsed above.
			at, _ := url.Parse(*called.URL)
			at.Path = path
			called.URL = new(at.String())
		}
		return called
	}, nil
}

// write creates, updates or deletes the configuration. It goes with the static
// one when Penstock is uninstalled, so that nothing is left that fails for want
// of somebody who answers. Its CA bundles are whoever's who writes those of the
// static one.
func (c *configurer) write(ctx context.Context, static *admissionregistrationv1.ValidatingWebhookConfiguration, webhooks []admissionregistrationv1.ValidatingWebhook) error {
	current := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := c.client.Get(ctx, client.ObjectKey{Name: PolicyConfiguration}, current)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("failed to get the webhook configuration of the policies: %w", err)
	}
	absent := apierrors.IsNotFound(err)
	if len(webhooks) == 0 {
		if absent {
			return nil
		}
		return wrapWrite(client.IgnoreNotFound(c.client.Delete(ctx, current)))
	}
	wanted := current.DeepCopy()
	wanted.Name = PolicyConfiguration
	wanted.Labels = union(current.Labels, static.Labels)
	wanted.Annotations = union(current.Annotations, injection(static.Annotations))
	wanted.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration", Name: static.Name, UID: static.UID,
	}}
	wanted.Webhooks = withBundles(webhooks, current.Webhooks)
	switch {
	case absent:
		return wrapWrite(c.client.Create(ctx, wanted))
	case equality.Semantic.DeepEqual(current, wanted):
		return nil
	default:
		return wrapWrite(c.client.Update(ctx, wanted))
	}
}

func wrapWrite(err error) error {
	if err != nil {
		return fmt.Errorf("failed to write the webhook configuration of the policies: %w", err)
	}
	return nil
}

// withBundles keeps the CA bundle of each webhook that there is already.
func withBundles(webhooks, current []admissionregistrationv1.ValidatingWebhook) []admissionregistrationv1.ValidatingWebhook {
	kept := slices.Clone(webhooks)
	for i := range kept {
		at := slices.IndexFunc(current, func(one admissionregistrationv1.ValidatingWebhook) bool { return one.Name == kept[i].Name })
		if at >= 0 && len(current[at].ClientConfig.CABundle) > 0 {
			kept[i].ClientConfig.CABundle = current[at].ClientConfig.CABundle
		}
	}
	return kept
}

// injection are the annotations that have cert-manager write CA bundles.
func injection(annotations map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range annotations {
		if strings.HasPrefix(key, "cert-manager.io/inject-") {
			kept[key] = value
		}
	}
	return kept
}

func union(a, b map[string]string) map[string]string {
	all := make(map[string]string, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	if len(all) == 0 {
		return nil
	}
	return all
}

// probe asks the API server to create, without storing it, the object that the
// last webhook is there to refuse. It reports whether the API server works by
// the configuration. In front of several API servers it has seen one of them;
// they take changes up within the same moment.
func (c *configurer) probe(ctx context.Context, webhooks []admissionregistrationv1.ValidatingWebhook) (bool, error) {
	if len(webhooks) == 0 {
		return true, nil
	}
	fingerprint := webhooks[len(webhooks)-1].ObjectSelector.MatchLabels[v1.ProbeLabel]
	if fingerprint == c.confirmed {
		return true, nil
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.options.Namespace, Name: "penstock-probe", Labels: map[string]string{v1.ProbeLabel: fingerprint},
	}}
	err := c.client.Create(ctx, object, client.DryRunAll)
	switch {
	case err == nil:
		return false, nil
	case strings.Contains(err.Error(), policies.ProbeAnswer(fingerprint)):
		c.confirmed = fingerprint
		return true, nil
	default:
		return false, fmt.Errorf("failed to probe the webhook configuration: %w", err)
	}
}
