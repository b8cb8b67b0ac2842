package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const modulePath = "github.com/penstock-dev/penstock/test/controlplane"

// binary is one program to build: where its source is, which module file pins it and how its version is stamped.
type binary struct {
	name      string
	pkg       string
	module    string                        // the module whose version is stamped
	folder    string                        // the folder of the go.mod that requires it, relative to this module
	firstTime string                        // what a build costs with an empty Go cache, as measured on 2 cores
	set       string                        // one of a set that is built only when asked for, by its name or that of the set
	tags      string                        // build tags
	local     bool                          // pkg is a folder of ours, not of a module that go.mod pins
	cgo       bool                          // needs a C compiler; without one, the program is taken from PATH
	stamp     func(version string) []string // the -X settings for the linker
}

// The order is that of need: what an API server needs comes first, and the first Kubernetes binary pays for the
// packages that the others share.
var binaries = []binary{
	{name: "etcd", pkg: "go.etcd.io/etcd/server/v3", module: "go.etcd.io/etcd/server/v3", firstTime: "30 s"},
	kubernetes("kube-apiserver", "5 to 9 min"),
	kubernetes("kubectl", "1 min"),
	kubernetes("kube-scheduler", "1 min"),
	kubernetes("kube-controller-manager", "1 to 3 min"),
	// kwok needs other versions of the Kubernetes modules, hence a module file of its own.
	{name: "kwok", pkg: "sigs.k8s.io/kwok/cmd/kwok", module: "sigs.k8s.io/kwok", folder: "kwok", firstTime: "3 min", stamp: kwokStamp},
	ofNode(kubernetes("kubelet", "1 min")),
	fromModule("containerd", "github.com/containerd/containerd/v2/cmd/containerd", "1 min"),
	fromModule("containerd-shim-runc-v2", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", "5 s"),
	fromModule("ctr", "github.com/containerd/containerd/v2/cmd/ctr", "5 s"),
	withC(fromModule("runc", "github.com/opencontainers/runc", "20 s")),
	fromModule("ptp", "github.com/containernetworking/plugins/plugins/main/ptp", "5 s"),
	fromModule("host-local", "github.com/containernetworking/plugins/plugins/ipam/host-local", "5 s"),
	ours("coredns", "1 min"),
	ours("realnode", "5 s"),
	ours("sh", "5 s"),
	ours("trainer", "5 s"),
}

// nodeSet is what a node with real containers runs, for test/node.
const nodeSet = "node"

func kubernetes(name, firstTime string) binary {
	return binary{
		name: name, pkg: "k8s.io/kubernetes/cmd/" + name, module: "k8s.io/kubernetes", firstTime: firstTime,
		stamp: kubernetesStamp,
	}
}

func ofNode(b binary) binary {
	b.set = nodeSet
	return b
}

// fromModule is a program from one of the modules that test/node/programs pins.
func fromModule(name, pkg, firstTime string) binary {
	// Without the tags containerd would build in drivers of file systems that a test has no use for.
	return ofNode(binary{name: name, pkg: pkg, folder: programs, firstTime: firstTime, tags: "no_btrfs no_devmapper no_zfs"})
}

// ours is a program whose source is in test/node/programs.
func ours(name, firstTime string) binary {
	return ofNode(binary{name: name, pkg: "./" + name, folder: programs, firstTime: firstTime, local: true})
}

const programs = "../node/programs"

func withC(b binary) binary {
	b.cgo = true
	return b
}

// kubernetesStamp names the version as a release build does: without it the server says v0.0.0, which kubectl and
// clients that compare versions complain about.
func kubernetesStamp(version string) []string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	var settings []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		settings = append(settings,
			pkg+".gitVersion="+version,
			pkg+".gitMajor="+parts[0],
			pkg+".gitMinor="+parts[1],
		)
	}
	return settings
}

func kwokStamp(version string) []string {
	return []string{"sigs.k8s.io/kwok/pkg/consts.Version=" + version}
}

// choose returns the binaries that a comma-separated list names, themselves or by their set, or the usual ones for an
// empty list.
func choose(only string) ([]binary, error) {
	var chosen []binary
	if only == "" {
		for _, b := range binaries {
			if b.set == "" {
				chosen = append(chosen, b)
			}
		}
		return chosen, nil
	}
	for name := range strings.SplitSeq(only, ",") {
		name = strings.TrimSpace(name)
		found := slices.DeleteFunc(slices.Clone(binaries), func(b binary) bool { return b.name != name && b.set != name })
		if len(found) == 0 || name == "" {
			known := []string{nodeSet}
			for _, b := range binaries {
				known = append(known, b.name)
			}
			return nil, fmt.Errorf("unknown binary %q: choose from %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, found...)
	}
	return chosen, nil
}

// offered returns the folder that KUBEBUILDER_ASSETS names when there is something to take from it: it counts only
// when it holds a whole API server, as envtest expects, and when it is not the folder that is built into.
func offered(dir string) string {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return ""
	}
	if first, err := os.Stat(assets); err == nil {
		if second, err := os.Stat(dir); err == nil && os.SameFile(first, second) {
			return ""
		}
	}
	for _, name := range []string{"kube-apiserver", "etcd", "kubectl"} {
		if !executable(filepath.Join(assets, name)) {
			say("KUBEBUILDER_ASSETS is %s, which holds no %s; building everything instead", assets, name)
			return ""
		}
	}
	return assets
}

// link makes dir/<name> a link to the binary in assets, so that callers find all of them in one folder, and reports
// whether there was one to link to.
func link(assets, dir string, b binary) (bool, error) {
	at := filepath.Join(dir, b.name)
	if assets == "" || !executable(filepath.Join(assets, b.name)) {
		// A link left by an earlier run must not pass for a binary of ours.
		if info, err := os.Lstat(at); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return false, os.Remove(at)
		}
		return false, nil
	}
	target, err := filepath.Abs(filepath.Join(assets, b.name))
	if err != nil {
		return false, err
	}
	for _, old := range []string{at, stampFile(dir, b)} {
		if err := os.Remove(old); err != nil && !os.IsNotExist(err) {
			return false, fmt.Errorf("failed to replace %s: %w", old, err)
		}
	}
	return true, os.Symlink(target, at)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// installed returns the folder in PATH that holds a program which cannot be built here, for want of a C compiler, or
// "" when it can be built or there is none.
func installed(b binary) (dir string, buildable bool) {
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "gcc"
	}
	if _, err := exec.LookPath(strings.Fields(compiler)[0]); !b.cgo || err == nil {
		return "", true
	}
	if path, err := exec.LookPath(b.name); err == nil {
		return filepath.Dir(path), false
	}
	return "", false
}
