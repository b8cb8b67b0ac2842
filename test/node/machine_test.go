package node

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// machineState is where a node could leave something outside its namespaces:
// mounts, network devices, and the places where its programs usually keep
// things.
func machineState() map[string][]string {
	state := map[string][]string{}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			state["mounts"] = append(state["mounts"], fields[4])
		}
	}
	for _, pattern := range []string{
		"/sys/class/net/*", "/run/netns/*", "/run/containerd*", "/var/lib/cni*", "/var/lib/kubelet*",
		"/var/lib/containerd*", "/var/log/pods*", "/var/log/containers*", "/etc/cni*", "/sys/fs/cgroup/*/k8s.io",
	} {
		state[pattern], _ = filepath.Glob(pattern)
	}
	return state
}

// groupsOf are the cgroups of the node whose parent process has this number.
func groupsOf(pid int) []string {
	name := "penstock-node-" + strconv.Itoa(pid)
	one, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
	two, _ := filepath.Glob("/sys/fs/cgroup/" + name)
	return append(one, two...)
}

// namespacesOf are those of the node whose parent process has this number.
func namespacesOf(pid int) []string {
	for _, path := range glob("/proc/[0-9]*/status") {
		content, _ := os.ReadFile(path)
		if strings.Contains(string(content), "\nPPid:\t"+strconv.Itoa(pid)+"\n") {
			return spaces(filepath.Dir(path))
		}
	}
	return nil
}

// spaces are the namespaces of a process that a node has for itself.
func spaces(process string) []string {
	var names []string
	for _, kind := range []string{"pid", "mnt", "net"} {
		if name, err := os.Readlink(filepath.Join(process, "ns", kind)); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// within are the command lines of the processes that are in any of the
// namespaces.
func within(namespaces []string) []string {
	var found []string
	for _, process := range glob("/proc/[0-9]*") {
		if slices.ContainsFunc(spaces(process), func(name string) bool { return slices.Contains(namespaces, name) }) {
			found = append(found, commandLine(process))
		}
	}
	return found
}

// processes are the command lines of the machine's processes, those in
// namespaces of their own too, that contain a text.
func processes(text string) []string {
	var found []string
	for _, process := range glob("/proc/[0-9]*") {
		if line := commandLine(process); strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

func commandLine(process string) string {
	content, _ := os.ReadFile(filepath.Join(process, "cmdline"))
	return string(bytes.ReplaceAll(bytes.TrimRight(content, "\x00"), []byte{0}, []byte(" ")))
}

func glob(pattern string) []string {
	found, _ := filepath.Glob(pattern)
	return found
}

// A node whose parent is killed goes too, with all that it runs; only empty
// cgroups stay, and the next node removes them.
func TestKilled(t *testing.T) {
	assets := required(t)
	before := machineState()
	// Nothing answers there: kubelet and CoreDNS go on trying.
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(nobody), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := assets.Path("realnode")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-dir="+dir, "-assets="+filepath.Dir(path), "-apiserver=127.0.0.1:1",
		"-kubeconfig="+kubeconfig, "-dns-kubeconfig="+kubeconfig, "-pause="+pauseImage)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	var own []string
	wait(t, "all programs start", func() bool {
		own = namespacesOf(pid)
		running := strings.Join(within(own), "\n")
		return strings.Contains(running, "containerd") && strings.Contains(running, "coredns") && strings.Contains(running, "kubelet")
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	wait(t, "its processes go", func() bool { return len(within(own)) == 0 })
	wait(t, "its cgroups go", func() bool {
		if err := Check(t.Context(), assets); err != nil {
			t.Fatal(err)
		}
		return len(groupsOf(pid)) == 0
	})
	if diff := cmp.Diff(before, machineState()); diff != "" {
		t.Error("the machine is not as it was:\n", diff)
	}
	if t.Failed() {
		t.Log(output.String())
	}
}

const nobody = `apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: a, context: {cluster: a}}]
current-context: a
`

func wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in a minute: %s", what)
		}
	}
}
