package cluster

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// RackLabel is the node label that names a rack, for topology-aware placement.
	RackLabel = "topology.kubernetes.io/rack"
	// ProductLabel is the node label by which the NVIDIA GPU operator tells the model of a node's GPUs.
	ProductLabel = "nvidia.com/gpu.product"
	// DefaultProduct is the GPU model of a simulated node that names none.
	DefaultProduct = "NVIDIA-H100-80GB-HBM3"

	gpuResource = "nvidia.com/gpu"

	// The simulator takes charge of nodes with this annotation only, so a real kubelet can join beside them.
	simulatedNode      = "kwok.x-k8s.io/node"
	simulatedNodeValue = "fake"
)

// The annotations that say how a simulated pod, and a simulated node, behaves. All times are whole seconds.
const (
	// SimulateRunSeconds is how long the containers of a pod run before they exit; "forever" for until deletion. By
	// default forever with restartPolicy Always, else 10.
	SimulateRunSeconds = "simulate.penstock.dev/run-seconds"
	// SimulateExitCode is the code that every container of the pod exits with; 0 by default. A container that the
	// restart policy restarts runs again for SimulateRunSeconds.
	SimulateExitCode = "simulate.penstock.dev/exit-code"
	// SimulateFailures is how often a container exits with SimulateExitCode before it exits with 0; by default always.
	SimulateFailures = "simulate.penstock.dev/failures"
	// SimulateStartSeconds is how long a scheduled pod stays Pending; 0 by default.
	SimulateStartSeconds = "simulate.penstock.dev/start-seconds"
	// SimulateStopSeconds is how long a deleted pod's containers take to stop, within its grace period; 0 by default.
	// Containers that use up the grace period are killed and exit with 137, others with 143.
	SimulateStopSeconds = "simulate.penstock.dev/stop-seconds"
	// SimulateReady, set to "false" on a node, makes the node not ready until it is removed. Kubernetes then evicts its
	// pods as their tolerations say, unless more than half of the nodes are not ready.
	SimulateReady = "simulate.penstock.dev/ready"
)

// Node is a simulated node: stock Kubernetes components treat it like a real one.
type Node struct {
	// Name is the node's name.
	Name string
	// GPUs is the number of nvidia.com/gpu it offers.
	GPUs int
	// Product is the GPU model in the label nvidia.com/gpu.product; DefaultProduct when empty and GPUs is not 0.
	Product string
	// Rack is the value of RackLabel; no label when empty.
	Rack string
	// Labels are further labels.
	Labels map[string]string
	// Taints keep pods away, as on a real node.
	Taints []corev1.Taint
	// Capacity adds to, or changes, what the node offers: 128 CPUs, 2 TiB of memory, 1 TiB of local storage, 110 pods
	// and its GPUs.
	Capacity corev1.ResourceList
}

func (n Node) object() *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname:   n.Name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("128"),
		corev1.ResourceMemory:           resource.MustParse("2Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("110"),
	}
	if n.GPUs > 0 {
		capacity[gpuResource] = *resource.NewQuantity(int64(n.GPUs), resource.DecimalSI)
		labels[ProductLabel] = DefaultProduct
		labels["nvidia.com/gpu.count"] = fmt.Sprint(n.GPUs)
		labels["nvidia.com/gpu.present"] = "true"
	}
	if n.Product != "" {
		labels[ProductLabel] = n.Product
	}
	if n.Rack != "" {
		labels[RackLabel] = n.Rack
	}
	maps.Copy(labels, n.Labels)
	maps.Copy(capacity, n.Capacity)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        n.Name,
			Labels:      labels,
			Annotations: map[string]string{simulatedNode: simulatedNodeValue},
		},
		Spec:   corev1.NodeSpec{Taints: n.Taints},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity.DeepCopy()},
	}
}

// AddNodes adds simulated nodes to a Full cluster and returns once pods can be scheduled to them.
func (c *Cluster) AddNodes(ctx context.Context, nodes ...Node) error {
	if c.options.Components != Full {
		return fmt.Errorf("nodes need Components: Full")
	}
	if err := c.createNodes(ctx, nodes); err != nil {
		return err
	}
	return c.simulator.await(ctx, func(ctx context.Context) error { return c.nodesReady(ctx, nodes) })
}

func (c *Cluster) createNodes(ctx context.Context, nodes []Node) error {
	for _, node := range nodes {
		_, err := c.client.CoreV1().Nodes().Create(ctx, node.object(), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("failed to create node %s: %w", node.Name, err)
		}
	}
	return nil
}

// nodesReady returns an error unless every node is ready and has lost the taint of a node that is not.
func (c *Cluster) nodesReady(ctx context.Context, nodes []Node) error {
	for _, want := range nodes {
		node, err := c.client.CoreV1().Nodes().Get(ctx, want.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		ready := false
		for _, condition := range node.Status.Conditions {
			ready = ready || condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
		}
		if !ready {
			return fmt.Errorf("node %s is not ready", want.Name)
		}
		for _, taint := range node.Spec.Taints {
			if taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable {
				return fmt.Errorf("node %s still has the taint %s", want.Name, taint.Key)
			}
		}
	}
	return nil
}
