package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func clientFor(t *testing.T, c *Cluster, user string, groups ...string) kubernetes.Interface {
	t.Helper()
	config, err := c.User(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAPIServerOnly(t *testing.T) {
	c := ForTest(t, Options{GangScheduling: true})
	admin := clientFor(t, c, "alice", "system:masters")
	nobody := clientFor(t, c, "bob", "data-science")
	configMaps := admin.CoreV1().ConfigMaps("default")

	_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kept"}, Data: map[string]string{"a": "b"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	t.Run("RBAC holds for users without a role", func(t *testing.T) {
		_, err := nobody.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("want Forbidden, got %v", err)
		}
		path, err := c.UserKubeconfig("system:bob", "data-science")
		if err != nil {
			t.Fatal(err)
		}
		_, stderr, err := c.Kubectl(t.Context(), "", "get", "configmaps", "--kubeconfig", path)
		if err == nil || !strings.Contains(stderr, `"system:bob" cannot list`) {
			t.Errorf("want a refusal that names the user, got %q, %v", stderr, err)
		}
	})

	t.Run("kubectl reads its input", func(t *testing.T) {
		manifest := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: from-stdin\n"
		stdout, _, err := c.Kubectl(t.Context(), manifest, "apply", "-f", "-")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("namespace/from-stdin created\n", stdout); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("pods need no service account", func(t *testing.T) {
		if _, err := admin.CoreV1().Pods("default").Create(t.Context(), pod("lone", "Never", nil), metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	})

	t.Run("gang scheduling is served", func(t *testing.T) {
		if _, err := admin.Discovery().ServerResourcesForGroupVersion("scheduling.k8s.io/v1beta1"); err != nil {
			t.Error(err)
		}
	})

	t.Run("objects outlive a restart of the server", func(t *testing.T) {
		c.StopAPIServer()
		if _, err := configMaps.Get(t.Context(), "kept", metav1.GetOptions{}); err == nil {
			t.Error("a stopped server answered")
		}
		began := time.Now()
		if err := c.StartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("API server back in %.1f s", time.Since(began).Seconds())
		if _, err := configMaps.Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func TestStopLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	c := ForTest(t, Options{Components: Full, Nodes: []Node{{Name: "gpu-1", GPUs: 8}}})
	c.mu.Lock()
	processes := append([]*process{c.etcd, c.apiserver}, c.others...)
	c.mu.Unlock()

	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("a second Stop failed: %v", err)
	}
	for _, p := range processes {
		// Signal 0 asks whether anything is left in the process group.
		if err := syscall.Kill(-p.pid, 0); err != syscall.ESRCH {
			t.Errorf("%s is still there: %v", p.name, err)
		}
	}
	if _, err := os.Stat(c.Dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there", c.Dir)
	}
	goleak.VerifyNone(t, before)
}

func TestStartFailureShowsTheLog(t *testing.T) {
	SkipWithoutAssets(t)
	dir := t.TempDir()
	_, err := Start(t.Context(), Options{Dir: dir, APIServerArgs: []string{"--no-such-flag"}})
	if err == nil {
		t.Fatal("a server with an unknown flag started")
	}
	for _, want := range []string{"kube-apiserver ended while starting", "unknown flag: --no-such-flag", dir} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in the error, got: %v", want, err)
		}
	}
}

func TestOneClusterPerFolder(t *testing.T) {
	dir := t.TempDir()
	ForTest(t, Options{Dir: dir})
	_, err := Start(t.Context(), Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "already running in "+dir) {
		t.Errorf("want a refusal, got %v", err)
	}
}

// A test that is killed cannot stop its cluster. The test binary runs itself to be the one that is killed.
func TestNothingOutlivesAKilledParent(t *testing.T) {
	const variable = "PENSTOCK_TEST_CLUSTER_DIR"
	if dir := os.Getenv(variable); dir != "" {
		c := ForTest(t, Options{Dir: dir})
		fmt.Printf("pids %d %d\n", c.etcd.pid, c.apiserver.pid)
		select {}
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends processes with their parent")
	}
	SkipWithoutAssets(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable+"="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var etcd, apiserver int
	if _, err := fmt.Fscanf(out, "pids %d %d\n", &etcd, &apiserver); err != nil {
		t.Fatalf("the cluster did not start: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, pid := range []int{etcd, apiserver} {
		deadline := time.Now().Add(10 * time.Second)
		for alive(pid) && time.Now().Before(deadline) {
			time.Sleep(20 * time.Millisecond)
		}
		if alive(pid) {
			t.Errorf("process %d outlived its parent", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// alive reports whether a process runs; one that has ended may stay a zombie until somebody reaps it.
func alive(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && !strings.Contains(string(status), "State:\tZ")
}

func TestStartHonoursItsContext(t *testing.T) {
	SkipWithoutAssets(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	if c, err := Start(ctx, Options{Dir: t.TempDir()}); err == nil {
		_ = c.Stop()
		t.Skip("the server was ready within the deadline")
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("giving up took %s", took)
	}
}
