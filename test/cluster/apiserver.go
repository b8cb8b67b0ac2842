package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	serviceRange = "10.96.0.0/16"

	// ServiceIP is the address of the Service kubernetes, by which pods reach the API server: the first of the range.
	ServiceIP = "10.96.0.1"
)

// FreePort returns a TCP port of 127.0.0.1 that nothing listens on. Another process may still take it before it is used, so
// whoever uses it tries again.
func FreePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("failed to find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func (c *Cluster) startEtcd(ctx context.Context) error {
	port, err := FreePort()
	if err != nil {
		return err
	}
	path, err := c.options.Assets.Path("etcd")
	if err != nil {
		return err
	}
	c.etcdURL = fmt.Sprintf("http://127.0.0.1:%d", port)
	name := "penstock-" + rand.Text()
	p, err := startProcess("etcd", path, c.logDir(),
		"--data-dir="+filepath.Join(c.Dir, "etcd"),
		"--listen-client-urls="+c.etcdURL,
		"--advertise-client-urls="+c.etcdURL,
		"--name="+name,
		// Nobody joins this cluster of one, so any port will do for its peers.
		"--listen-peer-urls=http://127.0.0.1:0",
		"--initial-advertise-peer-urls=http://127.0.0.1:0",
		"--initial-cluster="+name+"=http://127.0.0.1:0",
		// The data need not survive a power cut, and disks are slow.
		"--unsafe-no-fsync",
		"--log-level=warn",
	)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.etcd = p
	c.mu.Unlock()

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return p.await(ctx, func(ctx context.Context) error {
		return isMember(ctx, client, c.etcdURL, name)
	})
}

// isMember returns an error unless the etcd that answers has a member of this name. Another cluster's etcd may have
// taken the port first, and to write into that one would be worse than not to start.
func isMember(ctx context.Context, client *http.Client, url, name string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v3/cluster/member/list", strings.NewReader("{}"))
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || !strings.Contains(string(body), name) {
		return fmt.Errorf("etcd answered %s: %s", response.Status, body)
	}
	return nil
}

// StartAPIServer starts kube-apiserver, on the port it had before, and returns once it is ready. Start has done this
// already; it is for tests that stop the server.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	c.mu.Lock()
	running, stopped := c.apiserver, c.stopped
	c.mu.Unlock()
	if stopped {
		return errors.New("the cluster is stopped")
	}
	if running != nil && running.running() {
		return nil
	}
	path, err := c.options.Assets.Path("kube-apiserver")
	if err != nil {
		return err
	}
	p, err := startProcess("kube-apiserver", path, c.logDir(), c.apiServerArgs()...)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.apiserver = p
	c.mu.Unlock()
	return p.await(ctx, func(ctx context.Context) error {
		return get(ctx, c.http, c.Config.Host+"/readyz")
	})
}

// StopAPIServer ends kube-apiserver and waits until it is gone; etcd and the other components stay.
func (c *Cluster) StopAPIServer() {
	c.mu.Lock()
	p := c.apiserver
	c.apiserver = nil
	c.mu.Unlock()
	if p != nil {
		p.stop()
	}
}

// RestartAPIServer stops kube-apiserver and starts it again on the same port.
func (c *Cluster) RestartAPIServer(ctx context.Context) error {
	c.StopAPIServer()
	return c.StartAPIServer(ctx)
}

func (c *Cluster) apiServerArgs() []string {
	args := []string{
		"--etcd-servers=" + c.etcdURL,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(c.port),
		"--advertise-address=127.0.0.1",
		// An Endpoints object must not name a loopback address: without this the server complains for ever.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceRange,
		"--tls-cert-file=" + c.certificate("apiserver.crt"),
		"--tls-private-key-file=" + c.certificate("apiserver.key"),
		"--client-ca-file=" + c.certificate("ca.crt"),
		"--authorization-mode=Node,RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.certificate("service-account.key"),
		"--service-account-signing-key-file=" + c.certificate("service-account.key"),
		"--allow-privileged",
		"--v=" + strconv.Itoa(c.options.APIServerVerbosity),
	}
	if c.options.Components == APIServerOnly {
		// Nothing would create the service accounts that this plugin insists on.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if len(c.options.RuntimeConfig) > 0 {
		args = append(args, "--runtime-config="+join(c.options.RuntimeConfig))
	}
	return append(append(args, c.featureGates()...), c.options.APIServerArgs...)
}

func (c *Cluster) featureGates() []string {
	if len(c.options.FeatureGates) == 0 {
		return nil
	}
	return []string{"--feature-gates=" + join(c.options.FeatureGates)}
}

// get asks a health endpoint and returns an error for any answer but 200.
func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, response.Status)
	}
	return nil
}
