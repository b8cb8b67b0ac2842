// Command growth measures what workloads of one kind cost the reconciler, on
// simulated nodes, as they grow from few to many: writes to the API server, CPU
// and memory of the manager, and the time until all of them run. It prints last
// one line a figure that is to be held:
//
//	bar NAME VALUE LIMIT
//
// Lower is better. Creations and status writes are counted by the API server;
// Events, deletions and pod groups do not count. Time is that until all pods
// run, by what the cluster takes for the same pods and services of nobody.
// Growth is a figure for each of many jobs by that for each of few, so that 1 is
// linear.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/penstock-dev/penstock/test/cluster"
	"github.com/penstock-dev/penstock/test/install"
)

const (
	// timeLimit is how much longer than the cluster by itself it may take until
	// all run.
	timeLimit = 3
	// growthLimit leaves room for what a busy machine does meanwhile.
	growthLimit = 1.4
	// timeout bounds everything.
	timeout = 30 * time.Minute
)

func main() {
	kind := flag.String("kind", "training", "What to measure: training, for training jobs, or ray, for Ray clusters.")
	few := flag.Int("few", 100, "How many to begin with.")
	many := flag.Int("many", 1000, "How many to grow to.")
	flag.Parse()
	log.SetLogger(logr.Discard())
	w, ok := workloads[*kind]
	if !ok {
		fmt.Fprintf(os.Stderr, "Error: -kind must be training or ray, not %q\n", *kind)
		os.Exit(2)
	}
	if err := run(w, *few, *many); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(w workload, few, many int) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	control, err := cluster.Start(ctx, cluster.Options{Components: cluster.Full, Nodes: nodesFor(many * w.pods)})
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := control.Stop(); err == nil {
			err = stopErr
		}
	}()
	b, err := newBench(ctx, control, w)
	if err != nil {
		return err
	}
	// The first of a process pay for what is made once.
	if _, err := b.grow(ctx, "warm", few/10+1); err != nil {
		return err
	}
	small, err := b.grow(ctx, "few", few)
	if err != nil {
		return err
	}
	small.print(w, few)
	large, err := b.grow(ctx, "many", many)
	if err != nil {
		return err
	}
	large.print(w, many)
	type bar struct {
		name         string
		value, limit float64
	}
	bars := []bar{
		{"writes-per-" + w.each, large.writes, w.writesLimit},
		{"writes-at-rest", large.atRest, 0},
		{"cpu-growth", large.cpu / small.cpu, growthLimit},
		{"time", large.running / large.reference, timeLimit},
		{"time-growth", large.running / large.reference / (small.running / small.reference), growthLimit},
	}
	if w.cpuLimit > 0 {
		bars = append(bars, bar{"cpu-ms", small.cpu * 1e3, w.cpuLimit})
	}
	for _, bar := range bars {
		fmt.Printf("bar %s-%s %.3f %.3f\n", w.name, bar.name, bar.value, bar.limit)
	}
	return nil
}

// startManager installs Penstock and starts its manager, with the flags that it
// has by default; it serves metrics at the address that is returned.
func startManager(ctx context.Context, control *cluster.Cluster) (*cluster.Running, string, error) {
	binary, err := install.Build(ctx, control.Dir, "-trimpath")
	if err != nil {
		return nil, "", err
	}
	port, err := cluster.FreePort()
	if err != nil {
		return nil, "", err
	}
	options := install.Options{Port: port}
	if err := install.Apply(ctx, control.Config, options); err != nil {
		return nil, "", err
	}
	metrics, err := cluster.FreePort()
	if err != nil {
		return nil, "", err
	}
	address := fmt.Sprintf("127.0.0.1:%d", metrics)
	manager, err := install.Manager(ctx, control, binary, options, "--metrics-bind-address="+address)
	return manager, address, err
}
