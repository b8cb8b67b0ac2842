package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// User returns a client configuration that the API server takes for the named user in these groups, without client-side
// rate limit. What the user may do is up to RBAC; only the group system:masters may do everything.
func (c *Cluster) User(name string, groups ...string) (*rest.Config, error) {
	pair, err := c.ca.client(name, groups)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", c.port),
		QPS:  -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   c.ca.certPEM,
			CertData: pair.cert,
			KeyData:  pair.key,
		},
	}, nil
}

// UserKubeconfig writes a kubeconfig for the named user in these groups into the cluster's folder, and returns its
// path.
func (c *Cluster) UserKubeconfig(name string, groups ...string) (string, error) {
	config, err := c.User(name, groups...)
	if err != nil {
		return "", err
	}
	path := c.certificate(strings.NewReplacer(":", "-", "/", "-").Replace(name) + ".kubeconfig")
	return path, writeKubeconfig(path, config)
}

func writeKubeconfig(path string, config *rest.Config) error {
	const name = "penstock"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	file.CurrentContext = name
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("failed to write a kubeconfig: %w", err)
	}
	return nil
}

// Kubectl runs kubectl as the administrator, with stdin as its input, and returns what it printed. The error holds
// what it said on stderr; another user's --kubeconfig among the arguments wins.
func (c *Cluster) Kubectl(ctx context.Context, stdin string, args ...string) (stdout, stderr string, err error) {
	path, err := c.options.Assets.Path("kubectl")
	if err != nil {
		return "", "", err
	}
	all := append([]string{
		"--kubeconfig", c.Kubeconfig,
		// A cache of its own: the usual one is keyed by host and port, which another cluster may have had.
		"--cache-dir", filepath.Join(c.Dir, "kubectl-cache"),
	}, args...)
	cmd := exec.CommandContext(ctx, path, all...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), errs.String(), err
}
