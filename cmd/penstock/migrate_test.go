package main

import (
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
			_, stderr, code := runStreams(t, nil, append([]string{"migrate"}, tc.args...)...)
			if code != 2 || !strings.Contains(stderr, tc.want) {
				t.Errorf("exit code %d, %q, want 2 and %q", code, stderr, tc.want)
			}
		})
	}
}
