package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/test/cluster"
)

// Name is the node's name.
const Name = "real"

// Image is the name of the image whose program is the trainer. The kubelet must
// not look for it anywhere: imagePullPolicy is Never.
const Image = "penstock.test/trainer:1"

const (
	pauseImage = "penstock.test/pause:1"
	// shellImage is the trainer's with a shell, kubectlImage a shell with kubectl.
	shellImage   = "penstock.test/shell:1"
	kubectlImage = "penstock.test/kubectl:1"
	// rayImage has what stands in for Ray.
	rayImage = "penstock.test/ray:1"
)

// built are the programs of "make node".
var built = []string{
	"kubelet", "containerd", "containerd-shim-runc-v2", "ctr", "ptp", "host-local", "coredns", "realnode", "sh", "trainer",
}

// Missing says what this machine lacks for a node, or "".
func Missing() string {
	if runtime.GOOS != "linux" {
		return "Linux"
	}
	if os.Geteuid() != 0 {
		return "root"
	}
	for _, name := range []string{"mount", "umount"} {
		if _, err := exec.LookPath(name); err != nil {
			return name + " in PATH (util-linux)"
		}
	}
	return ""
}

// Unbuilt says which of the programs are missing, or "".
func Unbuilt(assets cluster.Assets) string {
	for _, name := range append([]string{"runc"}, built...) {
		if _, err := assets.Path(name); err != nil {
			if name == "runc" {
				return `runc: run "make node", with a C compiler (gcc) or runc in PATH`
			}
			return name + `: run "make node"`
		}
	}
	return ""
}

// Check tries whether a node can be made here: namespaces, mounts, cgroups and
// network devices. The error is what stands in the way.
func Check(ctx context.Context, assets cluster.Assets) error {
	path, err := assets.Path("realnode")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "penstock-node-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	output, err := exec.CommandContext(ctx, path, "-check", "-dir="+dir, "-apiserver=127.0.0.1:6443").CombinedOutput()
	if err != nil {
		return errors.New(strings.TrimSpace(string(output)))
	}
	return nil
}

// Node is a node that can be added to a cluster.
type Node struct {
	// Dir holds the node's logs, and below pods those of its containers.
	Dir    string
	assets cluster.Assets
}

// New makes a node's folder, in dir, whose path should be short: it holds
// sockets.
func New(dir string, assets cluster.Assets) *Node { return &Node{Dir: dir, assets: assets} }

// APIServerArgs are for the API server, so that it reaches the kubelet, and
// with it kubectl logs and exec, through the node's tunnel.
func (n *Node) APIServerArgs() ([]string, error) {
	path := filepath.Join(n.Dir, "egress.yaml")
	text := `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: ` + filepath.Join(n.Dir, "node.sock") + `}}
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return nil, fmt.Errorf("failed to write the way to the node: %w", err)
	}
	return []string{"--egress-selector-config-file=" + path, "--kubelet-preferred-address-types=InternalIP"}, nil
}

// Start starts the node beside a cluster whose API server was given
// APIServerArgs. It runs until the cluster stops. CoreDNS is the user
// DNSUser, who must be allowed to read services and endpoints.
func (n *Node) Start(ctx context.Context, c *cluster.Cluster) (*cluster.Running, error) {
	kubelet, err := c.UserKubeconfig("system:node:"+Name, "system:nodes")
	if err != nil {
		return nil, err
	}
	dns, err := c.UserKubeconfig(DNSUser)
	if err != nil {
		return nil, err
	}
	images, err := n.writeImages()
	if err != nil {
		return nil, err
	}
	realnode, err := n.assets.Path("realnode")
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, name := range append([]string{"runc"}, built...) {
		path, err := n.assets.Path(name)
		if err != nil {
			return nil, err
		}
		folders = append(folders, filepath.Dir(path))
	}
	return c.Run(ctx, cluster.Program{
		Name: "realnode",
		Path: realnode,
		Args: append([]string{
			"-name=" + Name,
			"-dir=" + n.Dir,
			"-assets=" + strings.Join(unique(folders), ":"),
			"-apiserver=" + strings.TrimPrefix(c.Config.Host, "https://"),
			"-kubeconfig=" + kubelet,
			"-dns-kubeconfig=" + dns,
			"-service=" + cluster.ServiceIP + ":443",
			"-pause=" + pauseImage,
		}, images...),
		Ready: func(context.Context) error {
			_, err := os.Stat(filepath.Join(n.Dir, "ready"))
			return err
		},
		Grace: 10 * time.Second,
	})
}

// writeImages makes the images that pods use, and returns what tells the node of
// them.
func (n *Node) writeImages() ([]string, error) {
	paths := map[string]string{}
	for _, name := range []string{"trainer", "sh", "kubectl"} {
		path, err := n.assets.Path(name)
		if err != nil {
			return nil, err
		}
		paths[name] = path
	}
	trainer := map[string]string{"/trainer": paths["trainer"]}
	var args []string
	for file, image := range map[string]image{
		"trainer.tar": {name: Image, entrypoint: "/trainer", programs: trainer, links: []string{"/usr/sbin/sshd", "/usr/bin/mpirun"}},
		"pause.tar":   {name: pauseImage, entrypoint: "/pause", programs: map[string]string{"/pause": paths["trainer"]}},
		"shell.tar": {
			name: shellImage, entrypoint: "/trainer", links: []string{"/usr/bin/mpirun"},
			programs: map[string]string{"/trainer": paths["trainer"], "/bin/sh": paths["sh"]},
		},
		"ray.tar": {
			name: rayImage, entrypoint: "/trainer", links: []string{"/usr/bin/ray"},
			programs: map[string]string{"/trainer": paths["trainer"], "/bin/bash": paths["sh"]},
		},
		"kubectl.tar": {
			name: kubectlImage, entrypoint: "/bin/sh",
			programs: map[string]string{"/bin/sh": paths["sh"], "/usr/bin/kubectl": paths["kubectl"]},
		},
	} {
		path := filepath.Join(n.Dir, file)
		if err := image.write(path); err != nil {
			return nil, err
		}
		args = append(args, "-image="+path)
	}
	return args, nil
}

// DNSUser is who CoreDNS is to the API server.
const DNSUser = "system:serviceaccount:kube-system:coredns"

func unique(names []string) []string {
	var once []string
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			once = append(once, name)
		}
	}
	return once
}
