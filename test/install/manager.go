package install

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/penstock-dev/penstock/test/cluster"
)

// Manager starts the binary of a manager beside a cluster that Apply has installed Penstock into, and returns once it
// is ready. It connects as the service account that the roles of config/rbac are bound to, and as nobody else: a
// permission that is missing there is missing here. Further arguments win over those that it is given.
func Manager(ctx context.Context, c *cluster.Cluster, binary string, options Options, args ...string) (*cluster.Running, error) {
	kubeconfig, err := c.UserKubeconfig("system:serviceaccount:"+Namespace+":"+ServiceAccount,
		"system:serviceaccounts", "system:serviceaccounts:"+Namespace)
	if err != nil {
		return nil, err
	}
	probes, err := cluster.FreePort()
	if err != nil {
		return nil, err
	}
	host := "127.0.0.1:" + strconv.Itoa(probes)
	return c.Run(ctx, cluster.Program{
		Name: "penstock-manager",
		Path: binary,
		Args: append([]string{
			"manager",
			"--kubeconfig=" + kubeconfig,
			"--namespace=" + Namespace,
			"--webhook-host=127.0.0.1",
			"--webhook-port=" + strconv.Itoa(options.Port),
			"--webhook-dns-names=" + options.host(),
			"--cert-source=self-managed",
			"--health-probe-bind-address=" + host,
			"--metrics-bind-address=0",
			// Nothing else calls it when it is stopped here.
			"--shutdown-delay=0s",
		}, args...),
		Ready: func(ctx context.Context) error { return ready(ctx, "http://"+host+"/readyz") },
		Grace: 10 * time.Second,
	})
}

func ready(ctx context.Context, url string) error {
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
