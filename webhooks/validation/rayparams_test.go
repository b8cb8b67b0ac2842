package validation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// clusterOfParams is a cluster with start parameters of its head and of a group.
func clusterOfParams(t testing.TB, head, worker string) *v1.RayCluster {
	t.Helper()
	return clusterOf(t, fmt.Sprintf(`spec: {roles: [{name: Head, ray: {startParams: %s}, %s}, {name: gpu, ray: {startParams: %s}, %s}]}`, head, ray, worker, ray))
}

// TestStartParams: what `ray start` fails on at once is refused.
func TestStartParams(t *testing.T) {
	const onHead, onWorker = "spec.roles[0].ray.startParams", "spec.roles[1].ray.startParams"
	tests := map[string]struct {
		head, worker string
		want         []string
	}{
		"good ones": {
			head: `{port: "6380", num-cpus: "0", include-dashboard: "true", log-color: "false", dashboard-host: 0.0.0.0, block: "true", memory: "+8_000_000_000",
  resources: '''{"a": 1.5, "b": 0}''', system-config: '''{"a": [1]}''', object-store-memory: '"100"', no-monitor: "True", tomorrow: x, temp-dir: /a}`,
			worker: `{resources: '"{\"a\": 1, \"b c\": 2}"', num-gpus: "false", node-ip-address: $MY_POD_IP, num-cpus: $(nproc), object-store-memory: "1 --verbose", system-reserved-cpu: "0.5"}`,
		},
		"keys that are no flags": {
			head: `{--num-cpus: "2", num cpus: "2", "": a, "2x": b, "-": c}`,
			want: []string{
				onHead + `[]: Required value: a flag of ray start needs a name: write it, or remove the entry`,
				onHead + `[-]: Invalid value: "-": cannot be a flag of ray start: write the name of one flag as the key, such as num-cpus, and what it takes as the value`,
				onHead + `[--num-cpus]: Invalid value: "--num-cpus": is written with its dashes, which are put before it: write num-cpus`,
				onHead + `[2x]: Invalid value: "2x": cannot be a flag of ray start: write the name of one flag as the key, such as num-cpus, and what it takes as the value`,
				onHead + `[num cpus]: Invalid value: "num cpus": cannot be a flag of ray start: write the name of one flag as the key, such as num-cpus, and what it takes as the value`,
			},
		},
		"numbers": {
			head:   `{port: abc, num-cpus: two, num-gpus: "", memory: 8Gi, object-store-memory: much, dashboard-port: "99999", metrics-export-port: "-1"}`,
			worker: `{num-cpus: "-1", num-gpus: "0.5", memory: "true", system-reserved-cpu: half}`,
			want: []string{
				onHead + `[dashboard-port]: Invalid value: "99999": must be a port, a number up to 65535: correct it, or leave it out`,
				onHead + `[memory]: Invalid value: "8Gi": must be a number of bytes, without a unit: write 8589934592`,
				onHead + `[metrics-export-port]: Invalid value: "-1": must be a port, a number up to 65535: correct it, or leave it out`,
				onHead + `[num-cpus]: Invalid value: "two": must be a whole number: write it as digits, or leave it out`,
				onHead + `[num-gpus]: Invalid value: "": must be a whole number: write it as digits, or leave it out`,
				onHead + `[object-store-memory]: Invalid value: "much": must be a number of bytes: write it as digits, or leave it out`,
				onHead + `[port]: Invalid value: "abc": must be the number of a port: write it as digits, such as 6379, or leave it out`,
				onWorker + `[memory]: Invalid value: "true": must be a number of bytes: write it as digits, or leave it out`,
				onWorker + `[num-cpus]: Invalid value: "-1": must be a whole number from 0, or else Ray fails: correct it, or leave it out`,
				onWorker + `[num-gpus]: Invalid value: "0.5": must be a whole number: write it as digits, or leave it out`,
				onWorker + `[system-reserved-cpu]: Invalid value: "half": must be a number: write it as 1.5`,
			},
		},
		"a port that workers cannot know": {
			head: `{port: "0"}`,
			want: []string{onHead + `[port]: Invalid value: "0": lets Ray choose a port, which workers cannot know: write one, such as 6379, or leave it out`},
		},
		"a port that is false": {
			head: `{port: "false"}`,
			want: []string{onHead + `[port]: Invalid value: "false": must be the number of a port: write it as digits, such as 6379, or leave it out`},
		},
		"flags": {
			head:   `{head: "yes", include-dashboard: maybe}`,
			worker: `{head: "true", no-monitor: "1", port: "6379", include-dashboard: "false"}`,
			want: []string{
				onHead + `[head]: Invalid value: "yes": takes no value: write true, or remove it`,
				onHead + `[include-dashboard]: Invalid value: "maybe": must be true or false: write one of the two`,
				onWorker + `[head]: Forbidden: would make each worker a head of its own, which joins no cluster: remove it`,
				onWorker + `[include-dashboard]: Forbidden: is for the head, and ray start refuses it on workers: remove it`,
				onWorker + `[no-monitor]: Invalid value: "1": takes no value: write true, or remove it`,
				onWorker + `[port]: Forbidden: is for the head, and ray start refuses it on workers: remove it`,
			},
		},
		"JSON that the shell takes apart": {
			head:   `{resources: '{"a": 1}', system-config: "'{a: 1}'"}`,
			worker: `{resources: "'[1]'"}`,
			want: []string{
				onHead + `[resources]: Invalid value: "{\"a\": 1}": is read by a shell first, which takes its quotes away, and then it is no JSON: write it in quotes, as '{"a": 1}'`,
				onHead + `[system-config]: Invalid value: "'{a: 1}'": is no JSON: write it as '{"accelerator": 4}', in quotes for the shell that reads it first`,
				onWorker + `[resources]: Invalid value: "'[1]'": is no JSON: write it as '{"accelerator": 4}', in quotes for the shell that reads it first`,
			},
		},
		"resources that Ray does not take": {
			head: `{resources: '''{"CPU": 1, "a": -1, "b": "2", "c": true}'''}`,
			want: []string{
				onHead + `[resources]: Invalid value: "'{\"CPU\": 1, \"a\": -1, \"b\": \"2\", \"c\": true}'": must not hold CPU, which Ray takes by a flag of its own: write num-cpus instead`,
				onHead + `[resources]: Invalid value: "'{\"CPU\": 1, \"a\": -1, \"b\": \"2\", \"c\": true}'": must not hold a negative amount, as of a: correct it, or leave it out`,
				onHead + `[resources]: Invalid value: "'{\"CPU\": 1, \"a\": -1, \"b\": \"2\", \"c\": true}'": must hold numbers, and b is none: write it as {"b": 1}`,
			},
		},
		"an open quote": {
			head:   `{node-name: "it's"}`,
			worker: `{node-name: '"a\"'}`,
			want: []string{
				onHead + `[node-name]: Invalid value: "it's": opens a quote that it does not close, and the shell that starts Ray fails on that: close it`,
				onWorker + `[node-name]: Invalid value: "\"a\\\"": opens a quote that it does not close, and the shell that starts Ray fails on that: close it`,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.head == "" {
				tc.head = "{}"
			}
			if tc.worker == "" {
				tc.worker = "{}"
			}
			if diff := cmp.Diff(tc.want, words(validation.ValidateRayCluster(nil, clusterOfParams(t, tc.head, tc.worker)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestStartParamsOfOwnCommand: where the author's command starts Ray, nobody
// knows whether it uses the flags, and the author is warned.
func TestStartParamsOfOwnCommand(t *testing.T) {
	clusters := map[string]string{
		"of the cluster": `{metadata: {annotations: {ray.io/overwrite-container-cmd: "true"}}, spec: {roles: [{name: Head, ray: {startParams: {port: a}}, ` + ray + `}]}}`,
		"of the role": `spec: {roles: [{name: Head, ray: {startParams: {port: a}},
  template: {metadata: {annotations: {ray.io/overwrite-container-cmd: "true"}}, spec: {containers: [{name: ray, image: a}]}}}]}`,
		"by itself": `spec: {roles: [{name: Head, ray: {startParams: {port: a}}, template: {spec: {containers: [{name: ray, image: a, args: [ray start --head]}]}}}]}`,
	}
	for name, text := range clusters {
		t.Run(name, func(t *testing.T) {
			cluster := clusterOf(t, text)
			if errs := validation.ValidateRayCluster(nil, cluster); len(errs) > 0 {
				t.Errorf("refused: %v", errs)
			}
			if advice := words(validation.AdviseRayCluster(nil, cluster)); len(advice) != 1 || !strings.HasPrefix(advice[0], "spec.roles[0].ray.startParams[port]: ") {
				t.Errorf("advised %q, want one line on the port", advice)
			}
		})
	}
}

// TestAdviseStartParams: what may be meant is admitted.
func TestAdviseStartParams(t *testing.T) {
	cluster := clusterOfParams(t, `{block: "false", head: "false", num_gpus: "1"}`, `{num-gpu: "1", disable-stats: "true", head: "false", block: "true"}`)
	if errs := validation.ValidateRayCluster(nil, cluster); len(errs) > 0 {
		t.Errorf("refused: %v", errs)
	}
	want := []string{
		`spec.roles[0].ray.startParams[block]: Forbidden: has no effect: Penstock sets block always, so that the container runs as long as Ray does; remove it`,
		`spec.roles[0].ray.startParams[head]: Forbidden: has no effect: this is the head; remove it`,
		`spec.roles[0].ray.startParams[num_gpus]: Forbidden: is no flag of ray start that is known here, and Ray fails on one that it does not know: did you mean num-gpus?`,
		`spec.roles[1].ray.startParams[num-gpu]: Forbidden: is no flag of ray start that is known here, and Ray fails on one that it does not know: did you mean num-gpus?`,
	}
	if diff := cmp.Diff(want, words(validation.AdviseRayCluster(nil, cluster))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
