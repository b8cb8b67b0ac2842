package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"text/template"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed config
var configs embed.FS

// startTimeout bounds the wait for one program.
const startTimeout = time.Minute

// runInit is the node's first process: it prepares the node, starts its
// programs and goes when one of them does.
func runInit(n *node) error {
	if err := unix.Sethostname([]byte(n.Name)); err != nil {
		return fmt.Errorf("failed to name the node: %w", err)
	}
	if err := mountAll(); err != nil {
		return err
	}
	if err := bringUpNetwork(n); err != nil {
		return err
	}
	if n.Check {
		return tryCable()
	}
	if err := join(n); err != nil {
		return err
	}
	if err := n.configure(); err != nil {
		return err
	}
	children := newChildren(n.Dir)
	if err := n.start(children); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(n.Dir, "ready"), nil, 0o644); err != nil {
		return err
	}
	return children.firstEnd()
}

// configure writes the programs' configuration.
func (n *node) configure() error {
	shim, err := n.program("containerd-shim-runc-v2")
	if err != nil {
		return err
	}
	values := struct {
		*node
		State, Shim, Address, Pods string
	}{node: n, State: stateDir, Shim: shim, Address: nodeAddress, Pods: podRange}
	files, err := template.ParseFS(configs, "config/*")
	if err != nil {
		return err
	}
	for name, at := range map[string]string{
		"containerd.toml":  "containerd.toml",
		"kubelet.yaml":     "kubelet.yaml",
		"Corefile":         "Corefile",
		"network.conflist": "cni/network.conflist",
	} {
		var text bytes.Buffer
		if err := files.ExecuteTemplate(&text, name, values); err != nil {
			return err
		}
		path := filepath.Join(stateDir, at)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(stateDir, "bin"), 0o755); err != nil {
		return err
	}
	// Called by this name, this program runs the real runc; see func runc.
	return os.Symlink(self, filepath.Join(stateDir, "bin", "runc"))
}

// program returns the path of a program.
func (n *node) program(name string) (string, error) {
	for _, dir := range n.Assets {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is missing: build it, or give its folder with -assets", name)
}

// start starts the programs, each once what it needs is there.
func (n *node) start(children *children) error {
	socket := filepath.Join(stateDir, "containerd.sock")
	if err := n.launch(children, "containerd", "--config="+filepath.Join(stateDir, "containerd.toml")); err != nil {
		return err
	}
	if err := children.await("containerd", func() error {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
		}
		return err
	}); err != nil {
		return err
	}
	for _, image := range n.Images {
		err := n.launch(children, "ctr", "--address="+socket, "--namespace=k8s.io", "images", "import", "--local", "--snapshotter=native", image)
		if err != nil {
			return err
		}
		if err := children.success("ctr"); err != nil {
			return fmt.Errorf("failed to load %s: %w", image, err)
		}
	}
	if err := n.launch(children, "coredns", "-conf="+filepath.Join(stateDir, "Corefile")); err != nil {
		return err
	}
	if err := n.launch(children, "kubelet",
		"--config="+filepath.Join(stateDir, "kubelet.yaml"),
		"--kubeconfig="+n.Kubeconfig,
		"--hostname-override="+n.Name,
		"--node-ip="+nodeAddress,
	); err != nil {
		return err
	}
	if err := children.await("coredns", func() error { return get("http://127.0.0.1:8181/ready") }); err != nil {
		return err
	}
	return children.await("kubelet", func() error { return get("http://127.0.0.1:10248/healthz") })
}

func (n *node) launch(children *children, name string, args ...string) error {
	path, err := n.program(name)
	if err != nil {
		return err
	}
	return children.start(name, path, args...)
}

func get(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, response.Status)
	}
	return nil
}
