package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// pod returns a pod with two containers, one of which asks for a GPU.
func pod(name string, policy corev1.RestartPolicy, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec: corev1.PodSpec{
			RestartPolicy: policy,
			Containers: []corev1.Container{
				{
					Name: "worker", Image: "registry.example/worker:1",
					Resources: corev1.ResourceRequirements{
						Limits: corev1.ResourceList{gpuResource: resource.MustParse("1")},
					},
				},
				{Name: "logger", Image: "registry.example/logger:1"},
			},
		},
	}
}

// eventually waits until the pod satisfies holds, and returns it.
func eventually(t *testing.T, pods corev1client.PodInterface, name string, holds func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var last *corev1.Pod
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		var err error
		last, err = pods.Get(ctx, name, metav1.GetOptions{})
		return err == nil && holds(last), err
	})
	if err != nil {
		t.Fatalf("pod %s did not get there: %v\n%+v", name, err, last.Status)
	}
	return last
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.Status.Phase == phase }
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func TestSimulatedPods(t *testing.T) {
	c := ForTest(t, Options{Components: Full, Nodes: []Node{{Name: "gpu-1", GPUs: 64, Rack: "r1"}}})
	pods := clientFor(t, c, "alice", "system:masters").CoreV1().Pods("default")
	create := func(t *testing.T, pod *corev1.Pod) {
		t.Helper()
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	for name, tc := range map[string]struct {
		policy      corev1.RestartPolicy
		annotations map[string]string
		want        func(*corev1.Pod) error
	}{
		"without annotations a pod that may end succeeds": {
			policy: corev1.RestartPolicyOnFailure,
			want:   ended(corev1.PodSucceeded, 0, 0),
		},
		"an exit code fails a pod that never restarts": {
			policy:      corev1.RestartPolicyNever,
			annotations: map[string]string{SimulateRunSeconds: "1", SimulateExitCode: "3"},
			want:        ended(corev1.PodFailed, 3, 0),
		},
		"a failing container restarts and keeps its pod running": {
			policy:      corev1.RestartPolicyOnFailure,
			annotations: map[string]string{SimulateRunSeconds: "1", SimulateExitCode: "3"},
			want:        restarted(2, 3),
		},
		"failures can be limited in number": {
			policy:      corev1.RestartPolicyOnFailure,
			annotations: map[string]string{SimulateRunSeconds: "1", SimulateExitCode: "1", SimulateFailures: "2"},
			want:        ended(corev1.PodSucceeded, 0, 2),
		},
		"a pod that always restarts does so after success": {
			policy:      corev1.RestartPolicyAlways,
			annotations: map[string]string{SimulateRunSeconds: "1"},
			want:        restarted(1, 0),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := pod("", tc.policy, tc.annotations)
			made.GenerateName = "case-"
			made, err := pods.Create(t.Context(), made, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			running := eventually(t, pods, made.Name, func(pod *corev1.Pod) bool { return pod.Status.Phase != corev1.PodPending })
			if running.Spec.NodeName != "gpu-1" || running.Status.PodIP == "" {
				t.Errorf("want an address on gpu-1, got %q on %q", running.Status.PodIP, running.Spec.NodeName)
			}
			eventually(t, pods, made.Name, func(pod *corev1.Pod) bool { return tc.want(pod) == nil })
		})
	}

	t.Run("a pod that always restarts runs until it is deleted, and stops within its grace period", func(t *testing.T) {
		t.Parallel()
		create(t, pod("server", corev1.RestartPolicyAlways, map[string]string{SimulateStopSeconds: "2"}))
		eventually(t, pods, "server", isReady)
		began := time.Now()
		if err := pods.Delete(t.Context(), "server", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := pods.Get(t.Context(), "server", metav1.GetOptions{}); err != nil {
			t.Fatalf("the pod did not wait for its containers: %v", err)
		}
		awaitGone(t, pods, "server")
		if took := time.Since(began); took < time.Second || took > 10*time.Second {
			t.Errorf("want about 2 s, took %s", took)
		}
	})

	t.Run("a finalizer shows how a deleted pod ended, and is waited for", func(t *testing.T) {
		t.Parallel()
		held := pod("held", corev1.RestartPolicyAlways, nil)
		held.Finalizers = []string{"penstock.dev/test"}
		create(t, held)
		eventually(t, pods, "held", isReady)
		if err := pods.Delete(t.Context(), "held", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, pods, "held", func(pod *corev1.Pod) bool { return ended(corev1.PodFailed, 143, 0)(pod) == nil })
		if _, _, err := c.Kubectl(t.Context(), "", "patch", "pod", "held", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`); err != nil {
			t.Fatal(err)
		}
		awaitGone(t, pods, "held")
	})

	t.Run("a slow start keeps a pod pending", func(t *testing.T) {
		t.Parallel()
		create(t, pod("slow", corev1.RestartPolicyAlways, map[string]string{SimulateStartSeconds: "3"}))
		scheduled := eventually(t, pods, "slow", func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
		if scheduled.Status.Phase != corev1.PodPending {
			t.Errorf("want Pending, got %s", scheduled.Status.Phase)
		}
		eventually(t, pods, "slow", inPhase(corev1.PodRunning))
	})
}

func TestNodesComeAndGo(t *testing.T) {
	// Nothing is evicted while most of a cluster is not ready, hence two nodes beside the one that fails.
	c := ForTest(t, Options{Components: Full, Nodes: []Node{{Name: "cpu-1"}, {Name: "cpu-2"}}})
	client := clientFor(t, c, "alice", "system:masters")
	pods := client.CoreV1().Pods("default")
	waiting := pod("waiting", corev1.RestartPolicyAlways, nil)
	waiting.Spec.NodeSelector = map[string]string{RackLabel: "r2", ProductLabel: "NVIDIA-A100-SXM4-80GB"}
	waiting.Spec.Tolerations = []corev1.Toleration{{
		Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		TolerationSeconds: new(int64),
	}}
	if _, err := pods.Create(t.Context(), waiting, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.AddNodes(t.Context(), Node{Name: "gpu-2", GPUs: 1, Rack: "r2", Product: "NVIDIA-A100-SXM4-80GB"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, pods, "waiting", isReady)
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, "gpu-2", metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Errorf("the node has no lease, so it will not stay ready: %v", err)
	}

	if _, _, err := c.Kubectl(t.Context(), "", "annotate", "node", "gpu-2", SimulateReady+"=false"); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, pods, "waiting")
}

func TestGangSchedulingAcrossARestart(t *testing.T) {
	c := ForTest(t, Options{Components: Full, GangScheduling: true, Nodes: []Node{{Name: "gpu-1", GPUs: 1}}})
	pods := clientFor(t, c, "alice", "system:masters").CoreV1().Pods("default")
	group := `{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: pair},
		spec: {schedulingPolicy: {gang: {minCount: 2}}}}`
	if _, _, err := c.Kubectl(t.Context(), group, "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pair-0", "pair-1"} {
		member := pod(name, corev1.RestartPolicyAlways, nil)
		groupName := "pair"
		member.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &groupName}
		if _, err := pods.Create(t.Context(), member, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, pods, "pair-1", func(pod *corev1.Pod) bool { return len(pod.Status.Conditions) > 0 })
	if first, err := pods.Get(t.Context(), "pair-0", metav1.GetOptions{}); err != nil || first.Spec.NodeName != "" {
		t.Errorf("half a gang was scheduled to %q, %v", first.Spec.NodeName, err)
	}

	// The controllers and the simulator find the server again by themselves.
	if err := c.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.AddNodes(t.Context(), Node{Name: "gpu-2", GPUs: 1}); err != nil {
		t.Fatal(err)
	}
	eventually(t, pods, "pair-0", isReady)
	eventually(t, pods, "pair-1", isReady)
}

func awaitGone(t *testing.T, pods corev1client.PodInterface, name string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := pods.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		t.Fatalf("pod %s is still there: %v", name, err)
	}
}

// ended wants a pod whose containers all ended with the code, after so many restarts.
func ended(phase corev1.PodPhase, code, restarts int32) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		if pod.Status.Phase != phase || len(pod.Status.ContainerStatuses) != len(pod.Spec.Containers) {
			return fmt.Errorf("phase %s, %d statuses", pod.Status.Phase, len(pod.Status.ContainerStatuses))
		}
		for _, status := range pod.Status.ContainerStatuses {
			if status.State.Terminated == nil || status.State.Terminated.ExitCode != code || status.RestartCount != restarts {
				return fmt.Errorf("%s: %+v after %d restarts", status.Name, status.State, status.RestartCount)
			}
		}
		return nil
	}
}

// restarted wants a running pod whose containers have been restarted so often or more, the last time after the code.
func restarted(restarts, code int32) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		for _, status := range pod.Status.ContainerStatuses {
			last := status.LastTerminationState.Terminated
			if status.RestartCount < restarts || status.State.Running == nil || last == nil || last.ExitCode != code {
				return fmt.Errorf("%s: %+v after %d restarts", status.Name, status, status.RestartCount)
			}
		}
		return inPhaseError(pod, corev1.PodRunning)
	}
}

func inPhaseError(pod *corev1.Pod, phase corev1.PodPhase) error {
	if pod.Status.Phase != phase {
		return fmt.Errorf("phase %s", pod.Status.Phase)
	}
	return nil
}
