package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/penstock-dev/penstock/webhooks"
)

// decisionFlags are the flags of the decision log.
type decisionFlags struct {
	path        string
	allowedRate float64
	maskEnv     string
	mask        []string
}

func (f *decisionFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.path, "decision-log", "", "File to append decisions to, one JSON object a line in OPA's format; - for standard output, none when empty.")
	flags.Float64Var(&f.allowedRate, "decision-log-allowed", 0.01, "Which part of the requests that no policy had anything to say to is logged, from 0 to 1; all others are.")
	flags.StringVar(&f.maskEnv, "decision-log-mask-env", ".*", "Regular expression for the names of environment variables whose values are masked in the decision log.")
	flags.StringSliceVar(&f.mask, "decision-log-mask", nil, "JSON pointers to what is left out of the decision log, such as /input/*/spec/roles/*/template/spec/containers/*/args; a segment * is any member or element.")
}

// setup adds the decision log to a manager; nil when there is to be none.
func (f *decisionFlags) setup(mgr ctrl.Manager) (*webhooks.DecisionLog, error) {
	if f.path == "" {
		return nil, nil
	}
	if f.allowedRate < 0 || f.allowedRate > 1 {
		return nil, fmt.Errorf("--decision-log-allowed must be from 0 to 1, not %v", f.allowedRate)
	}
	mask, err := webhooks.NewMask(f.maskEnv, f.mask)
	if err != nil {
		return nil, fmt.Errorf("--decision-log-mask or --decision-log-mask-env is wrong: %w", err)
	}
	var output io.Writer = os.Stdout
	if f.path != "-" {
		// It stays open until the process ends.
		if output, err = os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			return nil, fmt.Errorf("failed to open the decision log: %w", err)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("failed to find the name of this host: %w", err)
	}
	log := webhooks.NewDecisionLog(webhooks.DecisionLogOptions{
		Output: output, Labels: map[string]string{"app": "penstock", "id": host, "version": version},
		AllowedRate: f.allowedRate, Mask: mask, Clock: time.Now, Log: mgr.GetLogger().WithName("decisions"),
	})
	if err := mgr.Add(log); err != nil {
		return nil, fmt.Errorf("failed to add the decision log: %w", err)
	}
	return log, nil
}
