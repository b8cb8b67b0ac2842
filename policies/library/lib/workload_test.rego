package penstock.workload_test

import data.penstock.workload

gpu(n) := {"resources": {"limits": {"nvidia.com/gpu": n}}}

demand(pod) := found if {
	found := {p.demand | some p in workload.pods} with input as {
		"object": {"apiVersion": "v1", "kind": "Pod", "spec": pod},
	}
}

test_containers_add_up if {
	demand({"containers": [gpu(2), gpu("3")]}) == {{"nvidia.com/gpu": 5}}
}

test_init_containers_run_before if {
	demand({"containers": [gpu(8)], "initContainers": [gpu(8)]}) == {{"nvidia.com/gpu": 8}}
}

test_sidecars_run_along if {
	sidecar := object.union(gpu(1), {"restartPolicy": "Always"})
	demand({"containers": [gpu(8)], "initContainers": [sidecar]}) == {{"nvidia.com/gpu": 9}}
	demand({"containers": [gpu(1)], "initContainers": [sidecar, gpu(8)]}) == {{"nvidia.com/gpu": 9}}
	demand({"containers": [gpu(1)], "initContainers": [gpu(8), sidecar]}) == {{"nvidia.com/gpu": 8}}
}

test_quantities_by_value if {
	workload.quantity(8) == 8
	workload.quantity("8") == 8
	workload.quantity("8.0") == 8
	workload.quantity("1k") == 1000
	workload.quantity("500m") == 0.5
	workload.quantity("1Ki") == 1024
	workload.quantity("1e3") == 1000
	workload.quantity("9007199254740993") == 9007199254740993
}

test_no_quantities if {
	every value in ["", "eight", "8 GPUs", null, true, [], {}] {
		not workload.quantity(value)
	}
}

test_extended_resources if {
	workload.extended("nvidia.com/gpu")
	not workload.extended("cpu")
	not workload.extended("attachable-volumes.kubernetes.io/x")
	not workload.extended("kubernetes.io/batch-cpu")
}

paths(object) := found if {
	found := {role.pod_path | some role in workload.roles} with input as {"object": object}
}

test_pod_paths_of_kinds if {
	pod := {"containers": []}
	paths({"apiVersion": "v1", "kind": "Pod", "spec": pod}) == {"spec"}
	paths({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": pod}}}) == {"spec.template.spec"}
	paths({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": pod}}}) == {"spec.template.spec"}
	paths({"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": pod}}}}}) == {"spec.jobTemplate.spec.template.spec"}
	paths({"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": {"roles": [{"name": "A"}, {"name": "B"}]}}) == {
		"spec.roles[0].template.spec",
		"spec.roles[1].template.spec",
	}
	paths({"apiVersion": "v1", "kind": "ConfigMap"}) == set()
}

test_replicas if {
	roles := workload.roles with input as {"object": {
		"apiVersion": "penstock.dev/v1",
		"kind": "TrainingJob",
		"spec": {
			"elastic": {"replicas": 5},
			"roles": [{"name": "Master"}, {"name": "Worker", "replicas": 2}, {"name": "PS", "replicas": null}],
		},
	}}
	[role.replicas | some role in roles] == [1, 5, 1]
	[role.replicas_path | some role in roles] == ["spec.roles[0].replicas", "spec.elastic.replicas", "spec.roles[2].replicas"]
}

test_devices_hold_what_is_written if {
	devices := workload.devices with input as {"object": {
		"apiVersion": "v1",
		"kind": "Pod",
		"spec": {"containers": [
			{"resources": {"limits": {"cpu": 1, "nvidia.com/gpu": "2", "amd.com/gpu": "two"}, "requests": {"nvidia.com/gpu": 2}}},
			{"resources": {"limits": null}},
			null,
		]},
	}}
	devices == [
		{"role": "Pod", "path": "spec.containers[0]", "name": "amd.com/gpu", "written": {"limits": "two"}, "amounts": {}},
		{"role": "Pod", "path": "spec.containers[0]", "name": "nvidia.com/gpu", "written": {"limits": "2", "requests": 2}, "amounts": {"limits": 2, "requests": 2}},
	]
}

test_scaled_replicas if {
	roles := workload.roles with input as {"object": {
		"apiVersion": "penstock.dev/v1",
		"kind": "RayCluster",
		"spec": {"roles": [
			{"name": "Head", "replicas": 1},
			{"name": "a", "replicas": 3, "hosts": 4, "scaling": {"minReplicas": 1, "maxReplicas": 8}},
			{"name": "b", "replicas": 0, "hosts": 2, "scaling": {"minReplicas": 2}},
			{"name": "c", "replicas": 9, "suspend": true, "scaling": {"minReplicas": 0, "maxReplicas": 5}},
			{"name": "d", "scaling": {}},
		]},
	}}
	[role.replicas | some role in roles] == [1, 12, 4, 5, 0]
	[role.replicas_path | some role in roles] == [
		"spec.roles[0].replicas",
		"spec.roles[1].replicas",
		"spec.roles[2].scaling.minReplicas",
		"spec.roles[3].scaling.maxReplicas",
		"spec.roles[4].replicas",
	]
}

test_services_have_no_end if {
	workload.runs == [] with input as {"object": {"apiVersion": "penstock.dev/v1", "kind": "RayCluster", "spec": {"runPolicy": {"suspend": true}}}}
	count(workload.runs) == 1 with input as {"object": {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": {}}}
}
