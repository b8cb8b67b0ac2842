package audit

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
)

// watchNamespaces has objects judged again when labels of their namespace change.
func (a *Auditor) watchNamespaces(ctx context.Context) error {
	informer, err := a.cache.GetInformer(ctx, &corev1.Namespace{})
	if err != nil {
		return fmt.Errorf("failed to watch namespaces: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(old, changed any) {
		before, after := old.(*corev1.Namespace), changed.(*corev1.Namespace)
		if !maps.Equal(before.Labels, after.Labels) {
			a.relabelled(after.Name)
		}
	}})
	if err != nil {
		return fmt.Errorf("failed to watch namespaces: %w", err)
	}
	return nil
}

// relabelled has the objects of a namespace judged again by policies whose
// verdict depends on its labels.
func (a *Auditor) relabelled(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, policy := range a.policies {
		if !policy.namespaceLabels {
			continue
		}
		for _, kind := range policy.kinds {
			if kind.Namespaced && a.watches[kind.GroupVersionKind] != nil {
				a.want(kind).add(name, namespace)
			}
		}
	}
}

// followInventory has objects judged again by policies that read an inventory that
// changed. An inventory that goes on changing must not keep the audit busy, so
// what it costs is a small share of the time.
func (a *Auditor) followInventory(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Before(a.inventoryAt) || a.scanning != nil || len(a.scans) > 0 {
		return
	}
	versions := map[schema.GroupVersionKind]uint64{}
	for name, policy := range a.policies {
		changed := false
		if policy.spec == nil {
			continue
		}
		for _, named := range policy.spec.Inventory {
			kind := schema.FromAPIVersionAndKind(named.APIVersion, named.Kind)
			versions[kind] = a.engine.Inventory().Version(kind)
			changed = changed || a.versions[kind] != versions[kind]
		}
		for _, kind := range policy.kinds {
			if changed && a.watches[kind.GroupVersionKind] != nil {
				scan := a.want(kind)
				scan.all[name], scan.inventory = true, true
			}
		}
	}
	a.versions = versions
}

// readInventory notes which inventory a policy begins to judge with. Its caller
// holds mu.
func (a *Auditor) readInventory(policy *auditedPolicy) {
	if policy.spec == nil {
		return
	}
	for _, named := range policy.spec.Inventory {
		kind := schema.FromAPIVersionAndKind(named.APIVersion, named.Kind)
		if _, known := a.versions[kind]; !known {
			a.versions[kind] = a.engine.Inventory().Version(kind)
		}
	}
}
