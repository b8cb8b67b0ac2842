package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/penstock-dev/penstock/test/cluster"
	"github.com/penstock-dev/penstock/test/install"
)

// liveTimeout bounds everything that is done with running servers.
const liveTimeout = 10 * time.Minute

// liveBars compares a running manager with a running server that only decodes
// and allows: what their processes take for requests that come over kept
// connections, eight at a time, as an API server sends them. Each process runs
// with its own settings of the collector: the manager with those that it
// chooses, the reference with Go's. GOGC in the environment sets both alike.
func liveBars() (bars []bar, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), liveTimeout)
	defer cancel()
	control, err := cluster.Start(ctx, cluster.Options{Components: cluster.APIServerOnly})
	if err != nil {
		return nil, err
	}
	defer func() {
		if stopErr := control.Stop(); err == nil {
			err = stopErr
		}
	}()
	ours, err := startManager(ctx, control)
	if err != nil {
		return nil, err
	}
	reference, err := startReference(ctx, control)
	if err != nil {
		return nil, err
	}
	gate, err := newGate(nil)
	if err != nil {
		return nil, err
	}
	review, err := admissionReview(gate)
	if err != nil {
		return nil, err
	}
	add := func(name, says string, limit float64) error {
		value, err := compare(name, ours.posted(ctx, says, review), reference.posted(ctx, "controller-runtime, decode and allow", review))
		bars = append(bars, bar{name, value, limit})
		return err
	}
	if err := add("admission-live-no-policy", "penstock, no policy", noPolicyLimit); err != nil {
		return nil, err
	}
	if err := install.Policies(ctx, control.Config); err != nil {
		return nil, err
	}
	if err := add("admission-live-six-policies", "penstock, all policies", admissionLimit); err != nil {
		return nil, err
	}
	return bars, nil
}

// startManager installs Penstock, and the namespace of the job: one that is
// not there would be looked for with every request.
func startManager(ctx context.Context, control *cluster.Cluster) (*server, error) {
	client, err := kubernetes.NewForConfig(control.Config)
	if err != nil {
		return nil, err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: jobNamespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("failed to create the job's namespace: %w", err)
	}
	binary, err := install.Build(ctx, control.Dir, "-trimpath")
	if err != nil {
		return nil, err
	}
	port, err := cluster.FreePort()
	if err != nil {
		return nil, err
	}
	options := install.Options{Port: port}
	if err := install.Apply(ctx, control.Config, options); err != nil {
		return nil, err
	}
	manager, err := install.Manager(ctx, control, binary, options)
	if err != nil {
		return nil, err
	}
	return newServer(manager.PID(), port), nil
}

// startReference runs this binary again, as the server to compare with.
func startReference(ctx context.Context, control *cluster.Cluster) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("failed to find this binary: %w", err)
	}
	port, err := cluster.FreePort()
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	reference, err := control.Run(ctx, cluster.Program{
		Name: "reference",
		Path: self,
		Args: []string{"-serve-reference=" + address},
		Ready: func(ctx context.Context) error {
			connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err != nil {
				return err
			}
			return connection.Close()
		},
	})
	if err != nil {
		return nil, err
	}
	return newServer(reference.PID(), port), nil
}
