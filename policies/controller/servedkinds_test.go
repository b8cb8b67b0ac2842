package controller

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/restmapper"
	clienttesting "k8s.io/client-go/testing"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// discovered are kinds as an API server tells them, with a REST mapper as
// client-go makes it of that.
func discovered(t *testing.T) *ServedKinds {
	t.Helper()
	resource := func(name, singular, kind string, short ...string) metav1.APIResource {
		return metav1.APIResource{Name: name, SingularName: singular, Kind: kind, ShortNames: short, Namespaced: true}
	}
	fake := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			resource("pods", "pod", "Pod", "po"), resource("pods/ephemeralcontainers", "", "Pod"), resource("pods/eviction", "", "Eviction"),
		}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			resource("deployments", "deployment", "Deployment", "deploy"), resource("deployments/scale", "", "Scale"), resource("deployments/status", "", "Deployment"),
		}},
		{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
			resource("allows", "allow", "Allow"), resource("allowlists", "allowlist", "AllowList"), resource("denylists", "denylist", "DenyList"),
		}},
	}}}
	groups, err := restmapper.GetAPIGroupResources(fake)
	if err != nil {
		t.Fatal(err)
	}
	return &ServedKinds{mapper: restmapper.NewDiscoveryRESTMapper(groups), discovery: fake}
}

func TestKindsAreServedAsTheyAreSpelt(t *testing.T) {
	served := discovered(t)
	tests := map[schema.GroupKind]struct {
		served   bool
		spelling string
	}{
		{Group: "apps", Kind: "Deployment"}:       {served: true},
		{Group: "apps", Kind: "deployment"}:       {spelling: "Deployment"},
		{Group: "apps", Kind: "DEPLOYMENT"}:       {spelling: "Deployment"},
		{Group: "apps", Kind: "deployments"}:      {spelling: "Deployment"},
		{Group: "apps", Kind: "Deployments"}:      {spelling: "Deployment"},
		{Group: "apps", Kind: "Deploymnet"}:       {},
		{Group: "apps", Kind: "DeploymentList"}:   {},
		{Group: "apps", Kind: "List"}:             {},
		{Group: "apps", Kind: "Pod"}:              {},
		{Kind: "Pod"}:                             {served: true},
		{Kind: "pod"}:                             {spelling: "Pod"},
		{Kind: "PodList"}:                         {},
		{Kind: "Deployment"}:                      {},
		{Group: "example.com", Kind: "Allow"}:     {served: true},
		{Group: "example.com", Kind: "AllowList"}: {served: true},
		{Group: "example.com", Kind: "DenyList"}:  {served: true},
		{Group: "example.com", Kind: "denylist"}:  {},
	}
	for kind, want := range tests {
		mapping, err := served.RESTMapping(kind)
		switch {
		case err != nil && !meta.IsNoMatchError(err):
			t.Errorf("%s: %v", kind, err)
		case (err == nil) != want.served:
			t.Errorf("%s: served is %v, want %v", kind, err == nil, want.served)
		case err == nil && mapping.GroupVersionKind.GroupKind() != kind:
			t.Errorf("%s: is mapped as %s", kind, mapping.GroupVersionKind)
		}
		if got := served.Spelling(kind); !want.served && got != want.spelling {
			t.Errorf("%s: spelt %q, want %q", kind, got, want.spelling)
		}
	}
}

// TestKindsThatAreRemoved: a REST mapper goes on to know them.
func TestKindsThatAreRemoved(t *testing.T) {
	served := discovered(t)
	asking := []*v1.WorkloadPolicy{matching("p", on("example.com", "Allow"), on("apps", "Deployment")), matching("q", on("example.com", "AllowList"))}
	coverages := func() map[string]Coverage {
		t.Helper()
		_, coverages, err := Rules(asking, served, rulesOptions)
		if err != nil {
			t.Fatal(err)
		}
		return coverages
	}
	if got := coverages(); !got["p"].Installed || len(got["p"].Absent) > 0 || !got["q"].Dynamic {
		t.Fatalf("while they are served, got %+v", got)
	}
	all := served.discovery.(*fakediscovery.FakeDiscovery)
	there := all.Resources
	all.Resources = there[:2]
	if got := coverages(); len(got["p"].Absent) > 0 {
		t.Errorf("the answer of a moment ago was not used: %+v", got)
	}
	served.age(versionAge)
	if got := coverages(); got["p"].Installed || !got["p"].Dynamic || !slices.Equal(got["p"].Absent, []string{"Allow.example.com"}) || got["q"].Dynamic {
		t.Errorf("once they are removed, got %+v", got)
	}
	all.Resources = there
	if got := coverages(); !got["p"].Installed || len(got["p"].Absent) > 0 || !got["q"].Dynamic {
		t.Errorf("once they are there again, got %+v", got)
	}
	served.age(versionAge)
	asking = asking[:1] // of a name that a list might have, more is asked
	all.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("nobody answers")
	})
	if got := coverages(); len(got["p"].Absent) > 0 {
		t.Errorf("while nobody answers, got %+v", got)
	}
}

// age makes answers older.
func (s *ServedKinds) age(by time.Duration) {
	for version, found := range s.served {
		found.asked = found.asked.Add(-by)
		s.served[version] = found
	}
}

func TestAdviceOnKinds(t *testing.T) {
	served := discovered(t)
	for name, tc := range map[string]struct {
		policy *v1.WorkloadPolicy
		want   []string
	}{
		"all are served": {policy: matching("p", on("apps", "Deployment"), on("", "Pod", "", "ephemeralcontainers"))},
		"one is misspelt": {
			policy: matching("p", on("", "Pod"), on("apps", "deployment")),
			want:   []string{"spec.match.resources[1].kinds[0]: Forbidden: deployment.apps is not served, and names are taken as they are spelt: write Deployment"},
		},
		"a subresource is": {
			policy: matching("p", on("", "Pod", "ephemeralcontainer")),
			want:   []string{"spec.match.resources[0].subresources[0]: Forbidden: Pod has no subresource ephemeralcontainer: write ephemeralcontainers"},
		},
	} {
		var got []string
		for _, line := range served.Advice(t.Context(), tc.policy) {
			got = append(got, line.Error())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestCoverageNamesTheSpelling(t *testing.T) {
	served := discovered(t)
	options := rulesOptions
	options.Spelling = served.Spelling
	webhooks, coverages, err := Rules([]*v1.WorkloadPolicy{matching("p", on("apps", "deployment"), on("apps", "DeploymentList"))}, served, options)
	if err != nil || len(webhooks) > 0 {
		t.Fatalf("got webhooks %v and error %v, want neither", inShort(webhooks), err)
	}
	if diff := cmp.Diff([]string{"deployment.apps (spelt Deployment)", "DeploymentList.apps"}, coverages["p"].Absent); diff != "" {
		t.Error(diff)
	}
}
