package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// What it does in a cluster is in test/e2e.
func TestMigrateUsage(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"argument":      {[]string{"trainingjobs"}, `unexpected argument "trainingjobs"`},
		"flag":          {[]string{"--from", "v1alpha1"}, "unknown flag: --from"},
		"no kubeconfig": {[]string{"--kubeconfig", "absent"}, "failed to find the cluster"},
		"no context":    {[]string{"--kubeconfig", "kubeconfig", "--context", "absent"}, `context "absent" does not exist`},
		"no cluster":    {[]string{"--kubeconfig", "kubeconfig", "--timeout", "2s"}, "failed to"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir(filepath.Join("testdata", "migrate"))
			var out, errs bytes.Buffer
			cmd := newMigrateCommand()
			cmd.SilenceUsage, cmd.SilenceErrors = true, true
			cmd.SetArgs(tc.args)
			cmd.SetOut(&out)
			cmd.SetErr(&errs)
			code := exitStatus(cmd.ExecuteContext(t.Context()), &errs)
			if code != 2 || !strings.Contains(errs.String(), tc.want) {
				t.Errorf("exit code %d, %q, want 2 and %q", code, errs.String(), tc.want)
			}
		})
	}
}
