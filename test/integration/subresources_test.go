package integration

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies/library"
)

// waived are the writes of guarded kinds that no policy of the library judges,
// and why. A key is an operation and a resource; one that begins with a slash
// stands for that subresource of every kind.
var waived = map[string]string{
	"DELETE":                   "deleting frees what was asked for; a policy may name the operation",
	"/status":                  "what controllers and kubelets report asks for nothing",
	"CREATE pods/binding":      "the scheduler says where, not what; the pod was judged when it was created",
	"CREATE pods/eviction":     "evicting frees what was asked for",
	"CONNECT pods/attach":      "talks to a container that runs already",
	"CONNECT pods/exec":        "runs within what the container was given",
	"CONNECT pods/portforward": "talks to a container that runs already",
	"CONNECT pods/proxy":       "talks to a container that runs already",
}

// subresourcesByConnect are served by verbs that say nothing of it.
var subresourcesByConnect = []string{"attach", "exec", "portforward", "proxy"}

var _ = Describe("the library", func() {
	It("judges every write of every kind that it guards, or waives it by name", func(ctx context.Context) {
		policies, err := library.Policies()
		Expect(err).NotTo(HaveOccurred())
		served, err := clientset.Discovery().ServerPreferredResources()
		Expect(err).NotTo(HaveOccurred())
		_, everything, err := clientset.Discovery().ServerGroupsAndResources()
		Expect(err).NotTo(HaveOccurred())
		used := map[string]bool{}
		var unjudged []string
		for kind, guarded := range guardedResources(policies, served) {
			for _, subresource := range subresourcesOf(guarded, everything) {
				for _, operation := range operationsOf(subresource) {
					name := strings.TrimSuffix(guarded.Resource+"/"+subresource.name, "/")
					if slices.ContainsFunc(policies, func(policy *v1.WorkloadPolicy) bool { return names(policy, kind, subresource.name, operation) }) {
						continue
					}
					waiver := slices.IndexFunc([]string{operation + " " + name, operation, "/" + subresource.name}, func(key string) bool {
						if _, ok := waived[key]; ok {
							used[key] = true
							return true
						}
						return false
					})
					if waiver < 0 {
						unjudged = append(unjudged, operation+" "+name)
					}
				}
			}
		}
		Expect(unjudged).To(BeEmpty(), "neither judged nor waived")
		for key := range waived {
			Expect(used).To(HaveKey(key), "the waiver is for nothing")
		}
	})
})

// guardedResources are the resources of the kinds that policies name.
func guardedResources(policies []*v1.WorkloadPolicy, served []*metav1.APIResourceList) map[schema.GroupKind]schema.GroupVersionResource {
	guarded := map[schema.GroupKind]schema.GroupVersionResource{}
	for _, policy := range policies {
		for _, resources := range policy.Spec.Match.Resources {
			for _, name := range resources.Kinds {
				kind := schema.GroupKind{Group: resources.Group, Kind: name}
				for _, list := range served {
					version, err := schema.ParseGroupVersion(list.GroupVersion)
					Expect(err).NotTo(HaveOccurred())
					for _, resource := range list.APIResources {
						if version.Group == kind.Group && resource.Kind == kind.Kind && !strings.Contains(resource.Name, "/") {
							guarded[kind] = version.WithResource(resource.Name)
						}
					}
				}
			}
		}
	}
	Expect(guarded).NotTo(BeEmpty())
	return guarded
}

// A subresource is a resource itself where its name is empty.
type subresource struct {
	name  string
	verbs []string
}

func subresourcesOf(guarded schema.GroupVersionResource, everything []*metav1.APIResourceList) []subresource {
	var found []subresource
	for _, list := range everything {
		if list.GroupVersion != guarded.GroupVersion().String() {
			continue
		}
		for _, resource := range list.APIResources {
			name, ok := strings.CutPrefix(resource.Name, guarded.Resource)
			if ok && (name == "" || name[0] == '/') {
				found = append(found, subresource{name: strings.TrimPrefix(name, "/"), verbs: resource.Verbs})
			}
		}
	}
	return found
}

func operationsOf(s subresource) []string {
	if slices.Contains(subresourcesByConnect, s.name) {
		return []string{"CONNECT"}
	}
	var operations []string
	for verb, operation := range map[string]string{"create": "CREATE", "update": "UPDATE", "delete": "DELETE"} {
		if slices.Contains(s.verbs, verb) {
			operations = append(operations, operation)
		}
	}
	return operations
}

// names reports whether a policy names a write of a kind.
func names(policy *v1.WorkloadPolicy, kind schema.GroupKind, subresource, operation string) bool {
	operations := policy.Spec.Match.Operations
	if len(operations) == 0 {
		operations = []v1.PolicyOperation{v1.OperationCreate, v1.OperationUpdate}
	}
	if !slices.Contains(operations, v1.PolicyOperation(operation)) {
		return false
	}
	return slices.ContainsFunc(policy.Spec.Match.Resources, func(resources v1.PolicyResources) bool {
		subresources := resources.Subresources
		if len(subresources) == 0 {
			subresources = []string{""}
		}
		return resources.Group == kind.Group && slices.Contains(resources.Kinds, kind.Kind) && slices.Contains(subresources, subresource)
	})
}
