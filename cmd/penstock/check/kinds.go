package check

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/conversion"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// knownKinds are the kinds that policies may name as far as they are known
// without a cluster: those of Kubernetes and the upstream kinds.
type knownKinds struct{}

// Advice is of webhooks.Kinds.
func (knownKinds) Advice(_ context.Context, policy *penstockv1.WorkloadPolicy) field.ErrorList {
	return validation.AdviseKinds(policy, validation.ServedKinds{Kinds: kindsOfKubernetes()})
}

// misspelt says of a kind which was likely meant, where it is none that is known.
func misspelt(kind schema.GroupVersionKind) string {
	known := slices.Clone(kindsOfKubernetes())
	for _, own := range append(penstockv1.WorkloadKinds(), penstockv1.WorkloadPolicyGroupKind) {
		known = append(known, validation.ServedKind{GroupKind: own})
	}
	return validation.ServedKinds{Kinds: known}.Misspelt(kind.GroupKind())
}

// kindsOfKubernetes leaves out what is no object of a group's own, and the group
// extensions, which is not served any more.
var kindsOfKubernetes = sync.OnceValue(func() []validation.ServedKind {
	known := clientgoscheme.Scheme.AllKnownTypes()
	for _, kind := range conversion.UpstreamKinds() {
		known[kind] = nil
	}
	var found []validation.ServedKind
	seen := map[string]bool{}
	for kind := range known {
		item, list := strings.CutSuffix(kind.Kind, "List")
		_, ofItem := known[kind.GroupVersion().WithKind(item)]
		if seen[kind.GroupKind().String()] || list && ofItem || kind.Version == "__internal" || kind.Group == "extensions" ||
			strings.HasSuffix(kind.Kind, "Options") || kind.Kind == "WatchEvent" || kind.Kind == "Status" {
			continue
		}
		seen[kind.GroupKind().String()] = true
		plural, singular := meta.UnsafeGuessKindToResource(kind)
		found = append(found, validation.ServedKind{GroupKind: kind.GroupKind(), Names: []string{plural.Resource, singular.Resource}})
	}
	slices.SortFunc(found, func(a, b validation.ServedKind) int { return cmp.Compare(a.GroupKind.String(), b.GroupKind.String()) })
	return found
})
