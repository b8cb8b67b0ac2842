package pods_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-dev/penstock/reconcilers/pods"
	"github.com/penstock-dev/penstock/test/fixtures"
)

func TestReplacedEvent(t *testing.T) {
	pod := func(n int, mods ...fixtures.PodMod) pods.Replaced {
		pod := fixtures.Pod(fmt.Sprintf("a-worker-%d", n), mods...)
		return pods.Replaced{Pod: pod, Condition: pods.Examine(pod, "pytorch")}
	}
	var many []pods.Replaced
	for i := range 100 {
		many = append(many, pod(i, fixtures.Failed(1)))
	}
	tests := map[string]struct {
		replaced []pods.Replaced
		want     string
	}{
		"one":  {[]pods.Replaced{pod(0, fixtures.Failed(137))}, "Pod a-worker-0 ended with exit code 137 (OOMKilled); a new one takes its place"},
		"lost": {[]pods.Replaced{pod(0, fixtures.FailedFor("Terminated", ""), fixtures.Disrupted())}, "Pod a-worker-0 was lost with its node (Terminated); a new one takes its place, which is not counted as a restart"},
		"evicted for a limit of its own": {
			[]pods.Replaced{pod(0, fixtures.FailedFor("Evicted", "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "))},
			"Pod a-worker-0 failed (Evicted: Pod ephemeral local storage usage exceeds the total limit of containers 1Gi); a new one takes its place",
		},
		"evicted with an exit code": {
			[]pods.Replaced{pod(0, fixtures.Failed(9), fixtures.FailedFor("Evicted", "Usage exceeds the limit"))},
			"Pod a-worker-0 ended with exit code 9 (Evicted: Usage exceeds the limit); a new one takes its place",
		},
		"succeeded, which is not meant to end": {[]pods.Replaced{pod(0, fixtures.Succeeded())}, "Pod a-worker-0 ended with exit code 0 (Completed); a new one takes its place"},
		"several": {
			[]pods.Replaced{pod(0, fixtures.Failed(1)), pod(2, fixtures.FailedFor("NodeShutdown", "")), pod(3, fixtures.Failed(2))},
			"New pods take the place of 3: Pod a-worker-0 ended with exit code 1; Pod a-worker-2 was lost with its node (NodeShutdown), which is not counted as a restart; Pod a-worker-3 ended with exit code 2",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := pods.ReplacedEvent(tc.replaced)
			if diff := cmp.Diff(tc.want, e.Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			if e.Related != tc.replaced[0].Pod {
				t.Errorf("related to %v", e.Related)
			}
		})
	}
	if got := pods.ReplacedEvent(many).Message; !strings.HasSuffix(got, "Pod a-worker-7 ended with exit code 1; and 92 more") || len(got) > 1024 {
		t.Errorf("of many: %s", got)
	}
	long := pods.ReplacedEvent([]pods.Replaced{pod(0, fixtures.FailedFor("Evicted", "limit "+strings.Repeat("é", 2000)))}).Message
	if !strings.HasSuffix(long, "é...); a new one takes its place") || len(long) > 400 {
		t.Errorf("of a pod that says much: %s", long)
	}
}

func TestCreatedEvent(t *testing.T) {
	for n, want := range map[int]string{1: "Created 1 pod", 2: "Created 2 pods"} {
		if got := pods.CreatedEvent(n).Message; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
