package main

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/penstock-dev/penstock/reconcilers"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/webhooks/certs"
)

// cacheOptions says what of the cluster the manager holds in memory: children
// that are ours, and what the self-managed certificate source reads. Both read
// Secrets; the one that holds the authority is no child and carries no label of
// one, so in Penstock's own namespace all are held.
func (o *managerOptions) cacheOptions(lean func(plan.Object), children []plan.Object) map[client.Object]cache.ByObject {
	options := reconcilers.CacheOptions(lean, children...)
	if o.certSource != certSourceSelfManaged {
		return options
	}
	for object, of := range certs.CacheOptions(o.secret()) {
		if _, isSecret := object.(*corev1.Secret); !isSecret {
			options[object] = of
		}
	}
	for object, of := range options {
		if _, isSecret := object.(*corev1.Secret); isSecret {
			of.Namespaces = map[string]cache.Config{o.namespace: {Transform: of.Transform}, cache.AllNamespaces: {LabelSelector: of.Label, Transform: of.Transform}}
			of.Label = nil
			options[object] = of
		}
	}
	return options
}
