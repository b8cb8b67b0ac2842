package main

import (
	"fmt"
	"os"
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
	optional  bool                          // built only when asked for by name
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
	asked(kubernetes("kubelet", "1 min")),
}

func kubernetes(name, firstTime string) binary {
	return binary{
		name: name, pkg: "k8s.io/kubernetes/cmd/" + name, module: "k8s.io/kubernetes", firstTime: firstTime,
		stamp: kubernetesStamp,
	}
}

func asked(b binary) binary {
	b.optional = true
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

// choose returns the binaries named in a comma-separated list, or the usual set for an empty one.
func choose(only string) ([]binary, error) {
	var chosen []binary
	if only == "" {
		for _, b := range binaries {
			if !b.optional {
				chosen = append(chosen, b)
			}
		}
		return chosen, nil
	}
	for name := range strings.SplitSeq(only, ",") {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(binaries, func(b binary) bool { return b.name == name })
		if i < 0 {
			var known []string
			for _, b := range binaries {
				known = append(known, b.name)
			}
			return nil, fmt.Errorf("unknown binary %q: choose from %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, binaries[i])
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
