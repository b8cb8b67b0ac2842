package integration

import (
	"context"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/cluster"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// writes counts the reconciler's creations and status writes by job; jobs are
// named by one word.
type writes struct {
	mu    sync.Mutex
	byJob map[string]int
}

func (w *writes) add(child string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byJob == nil {
		w.byJob = map[string]int{}
	}
	job, _, _ := strings.Cut(child, "-")
	w.byJob[job]++
}

func (w *writes) of(job string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byJob[job]
}

// newClient makes a manager's client that counts.
func (w *writes) newClient(config *rest.Config, options client.Options) (client.Client, error) {
	c, err := client.NewWithWatch(config, options)
	if err != nil {
		return nil, err
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			w.add(o.GetName())
			return c.Create(ctx, o, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if named, ok := o.(interface{ GetName() string }); ok {
				w.add(named.GetName())
			}
			return c.Apply(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			w.add(o.GetName())
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}), nil
}

// A job of 4 pods and 4 services may cost 4 status writes.
func testWrites(t *testing.T, env *trainingEnv) {
	env.create(t, fixtures.TrainingJob("cheap", fixtures.Master(), fixtures.Workers(3),
		simulate(map[string]string{cluster.SimulateRunSeconds: "3"})))
	env.untilPhase(t, "cheap", v1.PhaseSucceeded)
	if got, limit := env.writes.of("cheap"), 4+4+4; got > limit || got < 4+4+2 {
		t.Errorf("%d creations and status writes, want at most %d", got, limit)
	}
}
