package cluster

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:embed stages/*.yaml
var stages embed.FS

// commonArgs are for the controller-manager and the scheduler alike. Neither serves a port: what is awaited is their
// effect. The usual limit of 20 requests a second alone would cost four seconds of a start.
var commonArgs = []string{"--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=500", "--v=0"}

// startControllers starts what acts on objects, all at once, and waits until service accounts exist and every node
// is ready.
func (c *Cluster) startControllers(ctx context.Context) error {
	stageFiles, err := c.writeStages()
	if err != nil {
		return err
	}
	kwok := []string{
		"--manage-nodes-with-annotation-selector=" + simulatedNode + "=" + simulatedNodeValue,
		// As a kubelet's. Without leases every node becomes not ready for a moment, every 50 seconds.
		"--node-lease-duration-seconds=40",
	}
	for _, file := range stageFiles {
		kwok = append(kwok, "--config="+file)
	}
	components := []struct {
		name, user string
		groups     []string
		args       []string
	}{
		{name: "kube-controller-manager", user: "system:kube-controller-manager", args: c.controllerManagerArgs()},
		{name: "kube-scheduler", user: "system:kube-scheduler", args: append(c.featureGates(), commonArgs...)},
		// The simulator writes what kubelets of all nodes would, which no role of Kubernetes allows.
		{name: "kwok", user: "penstock-simulator", groups: []string{"system:masters"}, args: kwok},
	}
	started := map[string]*process{}
	for _, component := range components {
		kubeconfig, err := c.UserKubeconfig(component.user, component.groups...)
		if err != nil {
			return err
		}
		path, err := c.options.Assets.Path(component.name)
		if err != nil {
			return err
		}
		p, err := startProcess(component.name, path, c.logDir(), append(component.args, "--kubeconfig="+kubeconfig)...)
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.others = append(c.others, p)
		c.mu.Unlock()
		started[component.name] = p
	}
	c.simulator = started["kwok"]

	if err := c.createNodes(ctx, c.options.Nodes); err != nil {
		return err
	}
	return c.awaitControllers(ctx, started)
}

// awaitControllers waits for the effect of each component rather than for a port: it is what callers rely on.
func (c *Cluster) awaitControllers(ctx context.Context, started map[string]*process) error {
	waits := []func() error{
		func() error {
			return started["kube-controller-manager"].await(ctx, func(ctx context.Context) error {
				_, err := c.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
				return err
			})
		},
		func() error {
			return started["kwok"].await(ctx, func(ctx context.Context) error { return c.nodesReady(ctx, c.options.Nodes) })
		},
	}
	failures := make([]error, len(waits))
	var group sync.WaitGroup
	for i, wait := range waits {
		group.Go(func() { failures[i] = wait() })
	}
	group.Wait()
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	scheduler := started["kube-scheduler"]
	if !scheduler.running() {
		return scheduler.failure(fmt.Errorf("kube-scheduler ended while starting: %w", orExited(scheduler.err)))
	}
	return nil
}

func (c *Cluster) controllerManagerArgs() []string {
	return append(append(c.featureGates(), commonArgs...),
		// Requests come from one service account per controller, as policies see them in a real cluster.
		"--use-service-account-credentials",
		"--service-account-private-key-file="+c.certificate("service-account.key"),
		"--root-ca-file="+c.certificate("ca.crt"),
		"--cluster-signing-cert-file="+c.certificate("ca.crt"),
		"--cluster-signing-key-file="+c.certificate("ca.key"),
	)
}

// writeStages puts the simulator's configuration where it can read it, and returns the paths.
func (c *Cluster) writeStages() ([]string, error) {
	entries, err := stages.ReadDir("stages")
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.Dir, "stages")
	var paths []string
	for _, entry := range entries {
		text, err := stages.ReadFile("stages/" + entry.Name())
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, entry.Name())
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return nil, fmt.Errorf("failed to write the simulator's stages: %w", err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}
