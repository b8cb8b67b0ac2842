package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"
)

var guide = template.Must(template.New("guide").Parse(`
Penstock is up after {{.Seconds}} s and stays up until Ctrl-C. In another terminal:

    source {{.Env}}    # PATH gets kubectl and penstock, KUBECONFIG this cluster

    kubectl get tj,pods -o wide
    kubectl explain trainingjob.spec.roles
    kubectl get tj resnet -o yaml                                  # stored as v1, every default spelled out
    kubectl get trainingjobs.v1alpha1.penstock.dev resnet -o yaml  # and read back in the version it was written in
    kubectl scale tj llama --replicas=3                            # more workers; 9 of them are refused
    kubectl apply -f {{.Samples}}/ray.v1alpha1.yaml                  # a Ray cluster in KubeRay's shape: kubectl get raycluster

Change a policy, here maxPerPod to 2, and it holds for the next request:

    kubectl edit workloadpolicy gpu-ceiling
    kubectl delete tj moe && kubectl apply -f {{.Samples}}/gang.v1.yaml

The same verdicts without a cluster, for Kubeflow's own kinds as well:

    penstock check -f {{.Samples}}/refused-job.yaml
    penstock check -f {{.Samples}}/upstream/pytorchjob.yaml

    KUBECONFIG  {{.Kubeconfig}}
    logs        {{.Logs}}
    metrics     http://{{.Metrics}}/metrics
`))

// guide writes the file that makes a shell use the cluster, and says what to try.
func (l *local) guide() error {
	env, err := l.writeEnvironment()
	if err != nil {
		return err
	}
	return guide.Execute(os.Stdout, map[string]string{
		"Seconds":    fmt.Sprintf("%.0f", time.Since(l.began).Seconds()),
		"Env":        env,
		"Samples":    l.samples,
		"Kubeconfig": l.cluster.Kubeconfig,
		"Logs":       l.logs(),
		"Metrics":    l.metrics,
	})
}

// writeEnvironment puts kubectl and penstock into .run/bin and writes .run/env, to be sourced by a shell.
func (l *local) writeEnvironment() (string, error) {
	kubectl, err := l.assets.Path("kubectl")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(l.dir, "bin")
	if err := errors.Join(os.RemoveAll(bin), os.MkdirAll(bin, 0o755)); err != nil {
		return "", fmt.Errorf("failed to make a folder for commands: %w", err)
	}
	for name, target := range map[string]string{"kubectl": kubectl, "penstock": l.binary} {
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			return "", fmt.Errorf("failed to link a command: %w", err)
		}
	}
	lines := []string{
		"export KUBECONFIG=" + quote(l.cluster.Kubeconfig),
		// kubectl's usual cache is keyed by host and port, which another cluster may have had.
		"export KUBECACHEDIR=" + quote(filepath.Join(l.cluster.Dir, "kubectl-cache")),
		"export PATH=" + quote(bin) + `:"$PATH"`,
	}
	path := filepath.Join(l.dir, "env")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		return "", fmt.Errorf("failed to write the environment: %w", err)
	}
	if wd, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(wd, path); err == nil {
			path = relative
		}
	}
	return path, nil
}

// quote makes a word of a shell out of any text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
