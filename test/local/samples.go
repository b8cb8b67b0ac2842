package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// step says what is being done and, once it is, how long that took.
func step(what string, do func() error) error {
	began := time.Now()
	fmt.Printf("==> %s ... ", what)
	if err := do(); err != nil {
		fmt.Println("failed")
		return err
	}
	fmt.Printf("%.1f s\n", time.Since(began).Seconds())
	return nil
}

// applySamples applies each sample and shows what kubectl says.
func (l *local) applySamples(ctx context.Context) error {
	fmt.Println("==> Samples")
	for _, name := range []string{"pytorch.v1alpha1.yaml", "pytorch.v1.yaml", "elastic.v1alpha1.yaml", "gang.v1.yaml"} {
		if err := l.kubectl(ctx, "apply", "-f", filepath.Join(l.samples, name)); err != nil {
			return err
		}
	}
	if err := l.kubectl(ctx, "apply", "-f", filepath.Join(l.samples, "refused-job.yaml")); err == nil {
		return fmt.Errorf("refused-job.yaml was accepted: Penstock does not stand in front of the API server; see %s", l.logs())
	}
	fmt.Println("\nThat refusal is as it should be. Each line names a field as it was written, what is wrong with it,\n" +
		"how to put it right, and the policy that says so. Without Penstock the job would wait for ever.")

	// Not shown: it only gives the pods time to be placed.
	_, _, _ = l.cluster.Kubectl(ctx, "", "wait", "--for=jsonpath={.status.phase}=Running", "tj", "--all", "--timeout=15s")
	return l.kubectl(ctx, "get", "tj")
}

// kubectl shows a command as a user would write it, and its output.
func (l *local) kubectl(ctx context.Context, args ...string) error {
	fmt.Println("\n$ kubectl " + strings.Join(args, " "))
	stdout, stderr, err := l.cluster.Kubectl(ctx, "", args...)
	fmt.Print(stdout, stderr)
	return err
}
