// Local runs a Kubernetes control plane on this machine with Penstock in front of it: make run. It applies the samples,
// one of which is refused, tells what to try next, and stays up until it is interrupted. Then it leaves no process
// behind. Its state is in .run of the module's folder. Its arguments are further flags of the manager.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/penstock-dev/penstock/policies/library"
	"github.com/penstock-dev/penstock/test/cluster"
	"github.com/penstock-dev/penstock/test/install"
)

func main() {
	// A closed terminal is a reason to stop as well.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A second signal does not wait: the kernel then ends what was started.
	context.AfterFunc(ctx, stop)
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	l := &local{began: time.Now()}
	defer func() {
		// What fails because of the interrupt is no news.
		if ctx.Err() != nil {
			err = nil
		}
		err = errors.Join(err, l.stop())
	}()
	if err := l.start(ctx); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-l.manager.Ended():
		return fmt.Errorf("the manager has ended: %w", l.manager.Failure())
	}
}

// nodes are two racks of two nodes of eight GPUs.
var nodes = []cluster.Node{
	{Name: "gpu-a1", Rack: "a", GPUs: 8},
	{Name: "gpu-a2", Rack: "a", GPUs: 8},
	{Name: "gpu-b1", Rack: "b", GPUs: 8},
	{Name: "gpu-b2", Rack: "b", GPUs: 8},
}

// local is the run: what was started, and where.
type local struct {
	began   time.Time
	dir     string // .run
	binary  string // bin/penstock
	samples string // config/samples, as a user would name it
	assets  cluster.Assets
	cluster *cluster.Cluster
	manager *cluster.Running
	metrics string
}

func (l *local) start(ctx context.Context) error {
	if err := l.find(); err != nil {
		return err
	}
	if err := step("Control plane, 4 nodes of 8 GPUs in 2 racks", func() error { return l.startCluster(ctx) }); err != nil {
		return err
	}
	var options install.Options
	err := step("Kinds, roles and webhooks of Penstock", func() (err error) {
		if options.Port, err = cluster.FreePort(); err != nil {
			return err
		}
		return install.Apply(ctx, l.cluster.Config, options)
	})
	if err != nil {
		return err
	}
	if err := step("Penstock, with certificates of its own", func() error { return l.startManager(ctx, options) }); err != nil {
		return err
	}
	names, err := library.Names()
	if err != nil {
		return err
	}
	if err := step("Policies: "+strings.Join(names, ", "), func() error { return install.Policies(ctx, l.cluster.Config) }); err != nil {
		return err
	}
	if err := l.applySamples(ctx); err != nil {
		return err
	}
	return l.guide()
}

// find looks for what must be there before anything is started.
func (l *local) find() error {
	root, err := cluster.ModuleRoot()
	if err != nil {
		return err
	}
	l.dir = filepath.Join(root, ".run")
	l.binary = filepath.Join(root, "bin", "penstock")
	if _, err := os.Stat(l.binary); err != nil {
		return fmt.Errorf("bin/penstock is missing: use make run, which builds it")
	}
	l.samples = filepath.Join(root, "config", "samples")
	if wd, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(wd, l.samples); err == nil {
			l.samples = relative
		}
	}
	l.assets, err = cluster.FindAssets()
	return err
}

func (l *local) startCluster(ctx context.Context) (err error) {
	l.cluster, err = cluster.Start(ctx, cluster.Options{
		Components:     cluster.Full,
		GangScheduling: true,
		Dir:            filepath.Join(l.dir, "cluster"),
		Nodes:          nodes,
		Assets:         l.assets,
	})
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("another run is up: use it, or stop it first: %w", err)
	}
	return err
}

func (l *local) startManager(ctx context.Context, options install.Options) error {
	port, err := cluster.FreePort()
	if err != nil {
		return err
	}
	l.metrics = fmt.Sprintf("127.0.0.1:%d", port)
	flags := append([]string{"--metrics-bind-address=" + l.metrics}, os.Args[1:]...)
	l.manager, err = install.Manager(ctx, l.cluster, l.binary, options, flags...)
	return err
}

// stop ends what was started, in the reverse order. The logs stay.
func (l *local) stop() error {
	if l.cluster == nil {
		return nil
	}
	fmt.Println("\nStopping")
	err := l.cluster.Stop()
	if err == nil {
		fmt.Printf("Stopped; logs stay in %s\n", l.logs())
	}
	return err
}

func (l *local) logs() string { return filepath.Join(l.cluster.Dir, "logs") }
