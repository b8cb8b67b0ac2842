package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/cluster"
	"github.com/penstock-dev/penstock/test/fixtures"
	"github.com/penstock-dev/penstock/test/install"
)

// liveTimeout bounds everything that is done with running servers.
const liveTimeout = 20 * time.Minute

// nodesInBench is how many nodes the cluster has.
const nodesInBench = 100

// liveServers are a running manager, without policies at first, and a running
// server that only decodes and allows.
type liveServers struct {
	control         *cluster.Cluster
	client          client.Client
	ours, reference *server
	// review is of the creation of a job.
	review []byte
	// conversion is how the kind of jobs is converted.
	conversion *apiextensionsv1.CustomResourceConversion
}

// withServers runs both servers for what measures them.
func withServers(measure func(context.Context, *liveServers) ([]bar, error)) (bars []bar, err error) {
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
	l := &liveServers{control: control}
	scheme := runtime.NewScheme()
	if err := errors.Join(v1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	if l.ours, err = startManager(ctx, control); err != nil {
		return nil, err
	}
	if l.reference, err = startReference(ctx, control); err != nil {
		return nil, err
	}
	if l.client, err = client.New(control.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	// What the library wants of a cluster, so that it has nothing to say.
	for _, node := range fixtures.Nodes(nodesInBench) {
		if err := l.client.Create(ctx, &unstructured.Unstructured{Object: node}); err != nil {
			return nil, fmt.Errorf("failed to create a node: %w", err)
		}
	}
	gate, err := newGate(nil)
	if err != nil {
		return nil, err
	}
	if l.review, err = admissionReview(gate); err != nil {
		return nil, err
	}
	return measure(ctx, l)
}

// liveBars compares a running manager with a running server that only decodes
// and allows: what their processes take for requests that come over kept
// connections, eight at a time, as an API server sends them. Each process runs
// with its own settings of the collector: the manager with those that it
// chooses, the reference with Go's. GOGC in the environment sets both alike.
func liveBars() ([]bar, error) {
	return withServers(func(ctx context.Context, l *liveServers) (bars []bar, err error) {
		add := func(name, says string, limit float64) error {
			value, err := compare(name, l.ours.posted(ctx, says, l.review), l.reference.posted(ctx, "controller-runtime, decode and allow", l.review))
			bars = append(bars, bar{name, value, limit})
			return err
		}
		if err := add("admission-live-no-policy", "penstock, no policy", noPolicyLimit); err != nil {
			return nil, err
		}
		if err := install.Policies(ctx, l.control.Config); err != nil {
			return nil, err
		}
		err = add("admission-live-library", "penstock, all policies", admissionLimit)
		return bars, err
	})
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
	manager, err := install.Manager(ctx, control, binary, options, "--policy-deadline=10s") // as others may use the machine
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
