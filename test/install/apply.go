package install

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/penstock-dev/penstock/config/crd"
	"github.com/penstock-dev/penstock/webhooks"
	"github.com/penstock-dev/penstock/webhooks/certs"
)

const (
	// Namespace is where the manager keeps its authority and its lease.
	Namespace = "penstock-system"
	// ServiceAccount is the one in Namespace that the manager's roles are bound to.
	ServiceAccount = "penstock-manager"
	// fieldManager applies what the installation holds.
	fieldManager = "penstock-install"
	// establishTimeout bounds how long an API server may take to serve a new kind.
	establishTimeout = 30 * time.Second
)

// Options say where the manager answers.
type Options struct {
	// Host is the name, or address, that the API server calls the webhooks at; localhost when empty. The manager's
	// certificate must be valid for it.
	Host string
	// Port is the port that the manager serves webhooks on.
	Port int
}

// Apply installs everything but policies: namespace, roles, kinds and webhooks. It returns once the kinds are served.
// The certificates' authority is left out: the manager writes its own, and until it has, calls of webhooks fail.
func Apply(ctx context.Context, config *rest.Config, options Options) error {
	c, err := newClient(config)
	if err != nil {
		return err
	}
	objects, err := options.manifests()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := apply(ctx, c, object); err != nil {
			return err
		}
	}
	return awaitKinds(ctx, c)
}

// manifests are the objects to install, in the order to install them in.
func (o Options) manifests() ([]*unstructured.Unstructured, error) {
	objects, err := read("config/manager/namespace.yaml", "config/rbac")
	if err != nil {
		return nil, err
	}
	definitions, err := o.definitions()
	if err != nil {
		return nil, err
	}
	configurations, err := o.configurations()
	if err != nil {
		return nil, err
	}
	return append(append(objects, definitions...), configurations...), nil
}

// definitions are the CustomResourceDefinitions. Those of more than one version have it converted by the manager.
func (o Options) definitions() ([]*unstructured.Unstructured, error) {
	all, err := crd.All()
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, definition := range all {
		if len(definition.Spec.Versions) > 1 {
			url := o.url(webhooks.ConvertPath)
			definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url},
					ConversionReviewVersions: []string{"v1"},
				},
			}
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
		if err != nil {
			return nil, fmt.Errorf("failed to encode %s: %w", definition.Name, err)
		}
		// The server's own; null lists in it would be refused.
		delete(content, "status")
		objects = append(objects, marked(&unstructured.Unstructured{Object: content}))
	}
	return objects, nil
}

// configurations are the webhook configurations, calling a URL instead of the Service.
func (o Options) configurations() ([]*unstructured.Unstructured, error) {
	objects, err := read("config/webhook/manifests.yaml")
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		entries, _, err := unstructured.NestedSlice(object.Object, "webhooks")
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		for _, entry := range entries {
			entry := entry.(map[string]any)
			path, found, err := unstructured.NestedString(entry, "clientConfig", "service", "path")
			if err != nil || !found {
				return nil, fmt.Errorf("%s %s: webhook %v names no path of a service", object.GetKind(), object.GetName(), entry["name"])
			}
			entry["clientConfig"] = map[string]any{"url": o.url(path)}
		}
		object.Object["webhooks"] = entries
		marked(object)
	}
	return objects, nil
}

func (o Options) url(path string) string {
	return "https://" + net.JoinHostPort(o.host(), strconv.Itoa(o.Port)) + path
}

func (o Options) host() string {
	if o.Host == "" {
		return "localhost"
	}
	return o.Host
}

// marked gives an object the label by which the manager knows what calls it.
func marked(object *unstructured.Unstructured) *unstructured.Unstructured {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[certs.PartOfLabel] = certs.PartOfValue
	object.SetLabels(labels)
	return object
}

func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("failed to make a client: %w", err)
	}
	return c, nil
}

func apply(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("failed to apply %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// awaitKinds returns once the API server serves every version of Penstock's kinds.
func awaitKinds(ctx context.Context, c client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, establishTimeout)
	defer cancel()
	all, err := crd.All()
	if err != nil {
		return err
	}
	for _, want := range all {
		err := retry(ctx, func() error { return served(ctx, c, want.Name) }, func(err error) bool { return errors.Is(err, errNotServed) })
		if err != nil {
			return err
		}
	}
	return nil
}

var errNotServed = errors.New("the kind is not served")

func served(ctx context.Context, c client.Client, name string) error {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, definition); err != nil {
		return fmt.Errorf("failed to read CustomResourceDefinition %s: %w", name, err)
	}
	for _, condition := range definition.Status.Conditions {
		if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("%w: %s has conditions %v", errNotServed, name, definition.Status.Conditions)
}

// retry tries until it works, fails for good or the context ends.
func retry(ctx context.Context, try func() error, again func(error) bool) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := try()
		if err == nil || !again(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-ticker.C:
		}
	}
}
