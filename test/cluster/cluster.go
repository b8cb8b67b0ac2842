package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// portAttempts is how often a start is tried again with other ports after another process took one.
const portAttempts = 5

// Cluster is a running control plane. Its methods may be called from several goroutines.
type Cluster struct {
	// Config is a client configuration of the administrator (group system:masters), without client-side rate limit.
	Config *rest.Config
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Dir is the folder that holds data, certificates and logs.
	Dir string

	options   Options
	temporary bool     // Dir was made by Start
	lock      *os.File // held for as long as the cluster uses Dir
	ca        *authority
	etcdURL   string
	port      int
	http      *http.Client
	client    kubernetes.Interface
	simulator *process // of nodes and pods; with Full

	mu        sync.Mutex
	etcd      *process
	apiserver *process
	others    []*process
	stopped   bool
}

// Start starts a cluster and returns once it answers, its controllers work and its nodes are ready. The context bounds
// the start only; the cluster runs until Stop. When a component fails, the error holds the end of its log.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: options}
	if err := c.prepareDir(); err != nil {
		return nil, errors.Join(err, c.releaseDir())
	}
	if err := c.start(ctx); err != nil {
		c.abandon()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	began := time.Now()
	for attempt := 1; ; attempt++ {
		err := c.startAPI(ctx)
		if err == nil {
			break
		}
		if attempt == portAttempts || !portTaken(err) {
			return err
		}
		c.stopProcesses()
	}
	c.report("kube-apiserver ready at %s", c.Config.Host, began)

	if c.options.Components == Full {
		if err := c.startControllers(ctx); err != nil {
			return err
		}
		c.report("kube-controller-manager, kube-scheduler and kwok ready, nodes: %d", len(c.options.Nodes), began)
	}
	return nil
}

// startAPI brings up etcd and kube-apiserver on fresh ports, and the clients that go with them.
func (c *Cluster) startAPI(ctx context.Context) error {
	if err := os.RemoveAll(filepath.Join(c.Dir, "etcd")); err != nil {
		return err
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	c.port = port
	if err := c.writeAccess(); err != nil {
		return err
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	return c.StartAPIServer(ctx)
}

// writeAccess makes the administrator's configuration, kubeconfig and client for the chosen port.
func (c *Cluster) writeAccess() error {
	c.closeConnections()
	config, err := c.User("penstock-admin", "system:masters")
	if err != nil {
		return err
	}
	c.Config = config
	c.Kubeconfig = filepath.Join(c.Dir, "admin.kubeconfig")
	if err := writeKubeconfig(c.Kubeconfig, config); err != nil {
		return err
	}
	c.http, err = rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("failed to make a client: %w", err)
	}
	c.client, err = kubernetes.NewForConfigAndClient(config, c.http)
	return err
}

// Stop ends every process of the cluster, waits until they are gone and removes the temporary folder. Calling it again
// does nothing.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return nil
	}
	c.stopped = true
	c.mu.Unlock()

	c.stopProcesses()
	c.closeConnections()
	return c.releaseDir()
}

// abandon is Stop for a cluster that did not start: the logs stay, for the error names one of them.
func (c *Cluster) abandon() {
	c.stopProcesses()
	c.closeConnections()
	_ = c.releaseDir(dataDirs...)
}

// stopProcesses ends what depends on the API server first, then the server, then its storage.
func (c *Cluster) stopProcesses() {
	c.mu.Lock()
	others, apiserver, etcd := c.others, c.apiserver, c.etcd
	c.others, c.apiserver, c.etcd = nil, nil, nil
	c.mu.Unlock()

	var group sync.WaitGroup
	for _, p := range others {
		group.Go(p.stop)
	}
	group.Wait()
	for _, p := range []*process{apiserver, etcd} {
		if p != nil {
			p.stop()
		}
	}
}

func (c *Cluster) closeConnections() {
	if c.http != nil {
		utilnet.CloseIdleConnectionsFor(c.http.Transport)
	}
}

func (c *Cluster) logDir() string { return filepath.Join(c.Dir, "logs") }

func (c *Cluster) certificate(name string) string { return filepath.Join(c.Dir, "certificates", name) }

func (c *Cluster) report(format string, what any, began time.Time) {
	fmt.Fprintf(c.options.Log, "cluster: "+format+", %.1f s\n", what, time.Since(began).Seconds())
}
