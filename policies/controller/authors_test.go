package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies/stored"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// rights is a cluster whose users may list some resources, and nothing else.
type rights struct {
	client.Client
	may []string
	// takes is how long an answer takes.
	takes time.Duration

	mu    sync.Mutex
	asked []authorizationv1.SubjectAccessReviewSpec
	now   int
	most  int
}

func (r *rights) Create(ctx context.Context, object client.Object, _ ...client.CreateOption) error {
	review := object.(*authorizationv1.SubjectAccessReview)
	r.mu.Lock()
	r.asked = append(r.asked, review.Spec)
	r.now++
	r.most = max(r.most, r.now)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.now--
		r.mu.Unlock()
	}()
	select {
	case <-time.After(r.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	about := review.Spec.ResourceAttributes
	name := about.Resource + "." + about.Group
	if about.Namespace != "" {
		name = about.Namespace + "/" + name
	}
	review.Status.Allowed = about.Verb == "list" && slices.Contains(r.may, name)
	return nil
}

func reads(apiVersion, kind string) func(*v1.WorkloadPolicySpec) {
	return func(spec *v1.WorkloadPolicySpec) {
		spec.Inventory = append(spec.Inventory, v1.InventoryKind{APIVersion: apiVersion, Kind: kind})
	}
}

var author = authenticationv1.UserInfo{
	Username: "ada", Groups: []string{"platform"}, UID: "7", Extra: map[string]authenticationv1.ExtraValue{"scope": {"a", "b"}},
}

func TestAuthorsMustBeAllowedToList(t *testing.T) {
	tests := map[string]struct {
		may  []string
		mods []func(*v1.WorkloadPolicySpec)
		// want holds, for each fault in turn, its field and a part of its message.
		want [][2]string
	}{
		"all of what is matched and read": {
			may:  []string{"trainingjobs.penstock.dev", "pods.", "nodes."},
			mods: []func(*v1.WorkloadPolicySpec){on("", "Pod"), reads("v1", "Node")},
		},
		"each kind that may not be listed is a fault of its own": {
			may:  []string{"pods."},
			mods: []func(*v1.WorkloadPolicySpec){on("", "Pod"), on("apps", "Deployment"), reads("v1", "Node")},
			want: [][2]string{
				{"spec.match.resources[0].kinds[0]", "ask for list on trainingjobs.penstock.dev"},
				{"spec.match.resources[2].kinds[0]", "ask for list on deployments.apps"},
				{"spec.inventory[0]", "ask for list on nodes"},
			},
		},
		"who may list everything is asked no more": {
			may:  []string{"*.*"},
			mods: []func(*v1.WorkloadPolicySpec){on("gone.example", "Thing"), on("*", "*")},
		},
		"all kinds of a group need all of its resources": {
			may:  []string{"trainingjobs.penstock.dev", "deployments.apps"},
			mods: []func(*v1.WorkloadPolicySpec){on("apps", "*")},
			want: [][2]string{{"spec.match.resources[1].kinds[0]", "list *.apps in all namespaces"}},
		},
		"a kind in every group needs everything": {
			may:  []string{"trainingjobs.penstock.dev", "pods."},
			mods: []func(*v1.WorkloadPolicySpec){on("*", "Pod")},
			want: [][2]string{{"spec.match.resources[1].kinds[0]", "ask for list on *.*"}},
		},
		"a kind that is not served needs all of its group": {
			may:  []string{"trainingjobs.penstock.dev"},
			mods: []func(*v1.WorkloadPolicySpec){on("gone.example", "Thing")},
			want: [][2]string{{"spec.match.resources[1].kinds[0]", "install the kind first, or ask for list on *.gone.example"}},
		},
		"and may be named by who has that": {
			may:  []string{"trainingjobs.penstock.dev", "*.gone.example"},
			mods: []func(*v1.WorkloadPolicySpec){on("gone.example", "Thing")},
		},
		"upstream kinds are seen where they are judged": {
			may:  []string{"trainingjobs.penstock.dev", "jaxjobs.kubeflow.org", "mpijobs.kubeflow.org", "paddlejobs.kubeflow.org", "xgboostjobs.kubeflow.org"},
			mods: []func(*v1.WorkloadPolicySpec){upstream},
			want: [][2]string{{"spec.upstreamKinds", "ask for list on pytorchjobs.kubeflow.org"}, {"spec.upstreamKinds", "ask for list on tfjobs.kubeflow.org"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &rights{may: tc.may}
			authors := &Authors{Reviews: cluster, Mapper: kinds}
			faults, err := authors.Faults(t.Context(), author, nil, policyOf("a", 1, rule, tc.mods...))
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range tc.want {
				if i >= len(faults) || faults[i].Field != want[0] || !strings.Contains(faults[i].Detail, want[1]) {
					t.Errorf("want fault %d at %s with %q, got %v", i, want[0], want[1], faults)
				}
			}
			if len(faults) != len(tc.want) {
				t.Errorf("got %d faults, want %d: %v", len(faults), len(tc.want), faults)
			}
			for _, asked := range cluster.asked {
				want := authorizationv1.SubjectAccessReviewSpec{
					User: "ada", Groups: []string{"platform"}, UID: "7", ResourceAttributes: asked.ResourceAttributes,
					Extra: map[string]authorizationv1.ExtraValue{"scope": {"a", "b"}},
				}
				if diff := cmp.Diff(want, asked); diff != "" {
					t.Errorf("asked about somebody else (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// manyKinds is a mapper of any kind of a group that has many.
type manyKinds struct{ stored.KindMapper }

func (manyKinds) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	// Two kinds of each resource, as a resource may have several.
	resource := schema.GroupVersionResource{Group: kind.Group, Version: "v1", Resource: strings.ToLower(strings.TrimSuffix(kind.Kind, "List")) + "s"}
	return &meta.RESTMapping{Resource: resource, GroupVersionKind: kind.WithVersion("v1")}, nil
}

func TestAuthorsAreAskedAboutSeveralKindsAtOnce(t *testing.T) {
	var mods []func(*v1.WorkloadPolicySpec)
	for i := range 40 {
		mods = append(mods, on("many", fmt.Sprintf("K%d", i)), on("many", fmt.Sprintf("K%dList", i)))
	}
	policy := policyOf("a", 1, rule, mods...)
	cluster := &rights{may: []string{"trainingjobs.penstock.dev"}, takes: 20 * time.Millisecond}
	authors := &Authors{Reviews: cluster, Mapper: manyKinds{}}
	faults, err := authors.Faults(t.Context(), author, nil, policy)
	if err != nil {
		t.Fatal(err)
	}
	// Everything, the policy's own kind, and 40 more, of two kinds each.
	if len(faults) != 80 || len(cluster.asked) != 42 || cluster.most < 2 || cluster.most > askedAtOnce {
		t.Errorf("got %d faults of %d questions, %d at once", len(faults), len(cluster.asked), cluster.most)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := authors.Faults(ctx, author, nil, policy); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want no answer in time", err)
	}
}

func TestReadsMore(t *testing.T) {
	stored := func(spec *v1.WorkloadPolicySpec) {
		spec.Parameters = &runtime.RawExtension{Raw: []byte(`{"a":1}`)}
		spec.Overrides = []v1.PolicyOverride{{NamespaceSelector: &metav1.LabelSelector{}, Action: v1.ActionWarn}}
	}
	tests := map[string]struct {
		edit func(*v1.WorkloadPolicySpec)
		want bool
	}{
		"nothing":          {edit: func(*v1.WorkloadPolicySpec) {}},
		"its action":       {edit: func(spec *v1.WorkloadPolicySpec) { spec.Action = v1.ActionAudit }},
		"its description":  {edit: func(spec *v1.WorkloadPolicySpec) { spec.Description = "why" }},
		"what errors mean": {edit: func(spec *v1.WorkloadPolicySpec) { spec.FailurePolicy = v1.FailurePolicyIgnore }},
		"an exception": {edit: func(spec *v1.WorkloadPolicySpec) {
			spec.Exceptions = []v1.PolicyException{{Namespaces: []string{"a"}, Reason: "r"}}
		}},
		"the action of an override":  {edit: func(spec *v1.WorkloadPolicySpec) { spec.Overrides[0].Action = v1.ActionDeny }},
		"saying what is the default": {edit: func(spec *v1.WorkloadPolicySpec) { spec.UpstreamKinds = v1.UpstreamKindsIgnore }},
		"its Rego":                   {edit: func(spec *v1.WorkloadPolicySpec) { spec.Rego += "\n" }, want: true},
		"its parameters":             {edit: func(spec *v1.WorkloadPolicySpec) { spec.Parameters.Raw = []byte(`{"a":2}`) }, want: true},
		"the parameters of an override": {edit: func(spec *v1.WorkloadPolicySpec) {
			spec.Overrides[0].Parameters = &runtime.RawExtension{Raw: []byte(`{}`)}
		}, want: true},
		"a kind that it matches":   {edit: on("", "Pod"), want: true},
		"its inventory":            {edit: reads("v1", "Node"), want: true},
		"which objects it matches": {edit: func(spec *v1.WorkloadPolicySpec) { spec.Match.ObjectSelector = &metav1.LabelSelector{} }, want: true},
		"upstream kinds":           {edit: upstream, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			old := policyOf("a", 1, rule, stored)
			edited := old.DeepCopy()
			tc.edit(&edited.Spec)
			if got := readsMore(&old.Spec, &edited.Spec); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			faults, err := (&Authors{Reviews: &rights{}, Mapper: fixtures.Served{}}).Faults(t.Context(), author, old, edited)
			if err != nil || (len(faults) > 0) != tc.want {
				t.Errorf("got faults %v, %v", faults, err)
			}
		})
	}
}
