package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies/stored"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

const (
	// discoveryTimeout bounds asking what is served: the author of a policy waits.
	discoveryTimeout = 3 * time.Second
	// discoveryAge is how old the answer may be: policies are applied in numbers.
	discoveryAge = 20 * time.Second
	// versionAge is how old the answer may be of one version of a group: less than
	// from one look at the policies to the next.
	versionAge = stored.ServedRetry * 2 / 3
)

// ServedKinds knows the kinds that the API server serves, by their exact names,
// as requests are matched by these. A REST mapper alone also knows each in small
// letters, and lists of it.
type ServedKinds struct {
	mapper    meta.RESTMapper
	discovery discovery.DiscoveryInterface

	mu    sync.Mutex
	all   []validation.ServedKind
	asked time.Time

	versions sync.Mutex
	// served are the kinds that versions of groups were found to serve, and when.
	served map[schema.GroupVersion]servedVersion
}

type servedVersion struct {
	kinds map[string]bool
	asked time.Time
}

var _ stored.KindMapper = (*ServedKinds)(nil)

// NewServedKinds gives the kinds of a manager's cluster.
func NewServedKinds(mgr ctrl.Manager) (*ServedKinds, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.Timeout = discoveryTimeout
	asking, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("failed to make the client that asks what is served: %w", err)
	}
	return &ServedKinds{mapper: mgr.GetRESTMapper(), discovery: asking}, nil
}

// RESTMapping is of stored.KindMapper.
func (s *ServedKinds) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := s.mapper.RESTMapping(kind, versions...)
	if err != nil {
		return nil, err
	}
	exact := s.still(mapping.GroupVersionKind)
	if exact {
		if exact, err = s.exact(mapping); err != nil {
			return nil, err
		}
	}
	if !exact {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return mapping, nil
}

// mayGo reports whether a kind was installed, so that it may be removed.
func mayGo(kind schema.GroupVersionKind) bool {
	return kind.Group != v1.GroupName && !clientgoscheme.Scheme.Recognizes(kind)
}

// still reports whether a kind that the mapper knows is served: a mapper never
// forgets one whose definition was deleted. Where nobody answers, it is.
func (s *ServedKinds) still(kind schema.GroupVersionKind) bool {
	if !mayGo(kind) {
		return true
	}
	s.versions.Lock()
	defer s.versions.Unlock()
	version := kind.GroupVersion()
	if found := s.served[version]; found.kinds[kind.Kind] && time.Since(found.asked) < versionAge {
		return true
	}
	// That it is not there is asked each time: it may have been installed just now.
	resources, err := s.discovery.ServerResourcesForGroupVersion(version.String())
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	found := servedVersion{kinds: map[string]bool{}, asked: time.Now()}
	for i := range resources.APIResources {
		if one := &resources.APIResources[i]; !strings.Contains(one.Name, "/") {
			found.kinds[one.Kind] = true
		}
	}
	if s.served == nil {
		s.served = map[schema.GroupVersion]servedVersion{}
	}
	s.served[version] = found
	return found.kinds[kind.Kind]
}

// exact reports whether a mapping is of a kind as it is spelt.
func (s *ServedKinds) exact(mapping *meta.RESTMapping) (bool, error) {
	kind := mapping.GroupVersionKind
	found, err := s.mapper.KindsFor(mapping.Resource)
	switch {
	case meta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return false, err
	case !slices.Contains(found, kind):
		return false, nil
	}
	item, list := strings.CutSuffix(kind.Kind, "List")
	if !list {
		return true, nil
	}
	if item != "" {
		_, err := s.mapper.RESTMapping(schema.GroupKind{Group: kind.Group, Kind: item}, kind.Version)
		if meta.IsNoMatchError(err) {
			return true, nil // there is nothing that it would be a list of
		}
		if err != nil {
			return false, err
		}
	}
	// It may be called so nevertheless, which the mapper cannot tell.
	resources, err := s.discovery.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return slices.ContainsFunc(resources.APIResources, func(one metav1.APIResource) bool { return one.Kind == kind.Kind }), nil
}

// Spelling gives the name of a served kind that somebody spelt in other letters
// or called by its resource, and nothing if there is none.
func (s *ServedKinds) Spelling(kind schema.GroupKind) string {
	// A mapper takes what names a resource in letters of either case, and the
	// singular too.
	found, err := s.mapper.KindsFor(schema.GroupVersionResource{Group: kind.Group, Resource: strings.ToLower(kind.Kind)})
	if err != nil {
		return "" // it is a hint and no more
	}
	for _, one := range found {
		if one.Group == kind.Group && one.Kind != kind.Kind && !strings.HasSuffix(one.Kind, "List") {
			return one.Kind
		}
	}
	return ""
}

// Advice gives what the author of a policy should know of the kinds that it
// names. What is served is asked for only where it is not all known.
func (s *ServedKinds) Advice(ctx context.Context, policy *v1.WorkloadPolicy) field.ErrorList {
	if s.knows(&policy.Spec) {
		return nil
	}
	all, err := s.list()
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("What the API server serves could not be asked for", "fault", err.Error())
		return nil
	}
	return validation.AdviseKinds(policy, validation.ServedKinds{Kinds: all, All: true})
}

// knows reports whether there is nothing to say of the kinds of a policy.
func (s *ServedKinds) knows(spec *v1.WorkloadPolicySpec) bool {
	for _, resources := range spec.Match.Resources {
		if len(resources.Subresources) > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(readKinds(spec), func(read readKind) bool {
		if read.kind.Kind == wildcard {
			return false
		}
		_, err := s.RESTMapping(read.kind)
		return err != nil
	})
}

// list gives all kinds that are served. Groups that do not answer are left out.
func (s *ServedKinds) list() ([]validation.ServedKind, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all != nil && time.Since(s.asked) < discoveryAge {
		return s.all, nil
	}
	_, lists, err := s.discovery.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("failed to ask what the API server serves: %w", err)
	}
	s.all, s.asked = servedIn(lists), time.Now()
	return s.all, nil
}

// servedIn gives the kinds of lists of resources, each once.
func servedIn(lists []*metav1.APIResourceList) []validation.ServedKind {
	found := []validation.ServedKind{}
	at := map[schema.GroupResource]int{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, one := range list.APIResources {
			resource := schema.GroupResource{Group: version.Group, Resource: one.Name}
			if _, known := at[resource]; known || strings.Contains(one.Name, "/") {
				continue
			}
			at[resource] = len(found)
			found = append(found, validation.ServedKind{
				GroupKind: schema.GroupKind{Group: version.Group, Kind: one.Kind}, Names: append([]string{one.Name, one.SingularName}, one.ShortNames...), Subresources: []string{},
			})
		}
		for _, one := range list.APIResources {
			parent, subresource, is := strings.Cut(one.Name, "/")
			i, known := at[schema.GroupResource{Group: version.Group, Resource: parent}]
			if is && known && !slices.Contains(found[i].Subresources, subresource) {
				found[i].Subresources = append(found[i].Subresources, subresource)
			}
		}
	}
	return found
}
