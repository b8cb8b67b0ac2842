// Command realnode is a Kubernetes node for a test: a kubelet, containerd and
// CoreDNS, for pods with real containers, on a control plane that runs beside it
// on this machine. It needs root and Linux.
//
// The node lives in namespaces of its own: its processes, its mounts, its
// network and its cgroups. Nothing of it is seen outside but files in -dir, and
// nothing of it can be left behind: when its first process dies, by whatever
// cause, the kernel ends all the others, and mounts and networks go with them.
//
//	host        parent: makes the cgroups, and removes them at the end
//	namespaces  init: mounts, network, tunnels; then containerd, CoreDNS, kubelet
//
// The two networks are joined by two tunnels through sockets in -dir: the node
// reaches the API server where it is on the host, at 127.0.0.1; and the API
// server reaches the kubelet through an HTTP CONNECT proxy, as it would through
// Konnectivity. There is no way to anywhere else.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// node is what the processes of a node are told.
type node struct {
	// Name is the node's name in the cluster.
	Name string
	// Dir is the folder for sockets and logs, seen inside and outside.
	Dir string
	// Assets are the folders that hold the programs; the first that has one wins.
	Assets []string
	// APIServer is the API server's address on the host.
	APIServer string
	// Service is the address at which pods look for the API server.
	Service string
	// Kubeconfig is the kubelet's, DNSKubeconfig CoreDNS's.
	Kubeconfig, DNSKubeconfig string
	// Images are tar files to load.
	Images []string
	// Check is true to try whether a node could be made, and not make it.
	Check bool
	// Pause is the name of the image that holds a pod's namespaces.
	Pause string
}

// In a Go program only the thread that makes a namespace is in it, and a child
// is killed when the thread that started it ends.
func init() { runtime.LockOSThread() }

func main() {
	if filepath.Base(os.Args[0]) == "runc" {
		fail(runc())
	}
	var n node
	var assets string
	var images list
	flag.StringVar(&n.Name, "name", "real", "the node's name")
	flag.StringVar(&n.Dir, "dir", "", "the folder for sockets and logs")
	flag.StringVar(&assets, "assets", "", "the folders with the programs, separated by :")
	flag.StringVar(&n.APIServer, "apiserver", "", "the API server's address on this host, such as 127.0.0.1:6443")
	flag.StringVar(&n.Service, "service", "", "the address at which pods look for the API server, if they may")
	flag.StringVar(&n.Kubeconfig, "kubeconfig", "", "the kubelet's kubeconfig")
	flag.StringVar(&n.DNSKubeconfig, "dns-kubeconfig", "", "CoreDNS's kubeconfig")
	flag.StringVar(&n.Pause, "pause", "", "the name of the pause image")
	flag.BoolVar(&n.Check, "check", false, "only try whether a node can be made on this machine")
	flag.Var(&images, "image", "a tar file with an image to load; may be repeated")
	stage := flag.String("stage", "parent", "which process this is; for its own use")
	flag.Parse()
	n.Assets, n.Images = filepath.SplitList(assets), images

	switch *stage {
	case "parent":
		fail(parent(&n))
	case "enter":
		fail(enter())
	case "init":
		fail(runInit(&n))
	default:
		fail(fmt.Errorf("unknown stage %q", *stage))
	}
}

// fail ends the process; only main may.
func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "realnode:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// list is a flag that may be repeated.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

// Set adds a value.
func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

// parent starts the node's first process, waits for it and puts the machine
// back as it was.
func parent(n *node) (failure error) {
	if err := os.MkdirAll(n.Dir, 0o755); err != nil {
		return err
	}
	groups, err := makeGroups()
	if err != nil {
		return err
	}
	defer func() { failure = errors.Join(failure, groups.remove()) }()
	uplink, err := listen(filepath.Join(n.Dir, uplinkSocket))
	if err != nil {
		return err
	}
	defer uplink.Close()
	go forward(uplink, "tcp", n.APIServer)

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	gate, opened, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe", append([]string{"-stage=enter"}, os.Args[1:]...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = gate, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("failed to start the node in namespaces of its own: %w", err)
	}
	gate.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := groups.add(cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill()
		return errors.Join(err, <-ended)
	}
	opened.Close() // The child is where it belongs, and goes on.

	select {
	case <-stop:
		// Its end is that of all its namespaces; Wait returns when they are empty.
		_ = cmd.Process.Kill()
		<-ended
		return nil
	case err := <-ended:
		if n.Check && err == nil {
			return nil
		}
		return fmt.Errorf("the node has ended: %w", err)
	}
}

// enter makes a cgroup namespace once the parent has put this process where its
// root is to be, and becomes the node's first process. It must not have started
// anything before.
func enter() error {
	if _, err := os.Stdin.Read(make([]byte, 1)); err == nil {
		return errors.New("the parent said something instead of closing the pipe")
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("failed to make a cgroup namespace: %w", err)
	}
	args := append([]string{os.Args[0], "-stage=init"}, withoutStage(os.Args[1:])...)
	return syscall.Exec("/proc/self/exe", args, os.Environ())
}

func withoutStage(args []string) []string {
	var kept []string
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-stage=") {
			kept = append(kept, arg)
		}
	}
	return kept
}

// runc takes the place of the real one, which is built without libseccomp and
// refuses a profile: it takes the profile, which kubelets give every sandbox,
// out of what is to be run. Pods of tests are trusted.
func runc() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for i, arg := range os.Args {
		if arg == "--bundle" && i+1 < len(os.Args) {
			if err := dropSeccomp(filepath.Join(os.Args[i+1], "config.json")); err != nil {
				return err
			}
		}
	}
	real := filepath.Join(filepath.Dir(self), "runc")
	return syscall.Exec(real, append([]string{real}, os.Args[1:]...), os.Environ())
}

func dropSeccomp(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var spec map[string]json.RawMessage
	if err := json.Unmarshal(content, &spec); err != nil {
		return err
	}
	var onLinux map[string]json.RawMessage
	if err := json.Unmarshal(spec["linux"], &onLinux); err != nil {
		return err
	}
	if _, set := onLinux["seccomp"]; !set {
		return nil
	}
	delete(onLinux, "seccomp")
	if spec["linux"], err = json.Marshal(onLinux); err != nil {
		return err
	}
	if content, err = json.Marshal(spec); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}
