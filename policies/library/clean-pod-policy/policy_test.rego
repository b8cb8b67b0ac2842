package clean_pod_policy_test

import data.clean_pod_policy

fields(run, gpus) := found if {
	found := {v.field | some v in clean_pod_policy.violation} with input as {
		"object": {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": {"runPolicy": run, "roles": [{
			"name": "Worker",
			"template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}]}},
		}]}},
		"parameters": {"heldAtMost": 300, "resources": ["nvidia.com/gpu"]},
	}
}

test_nothing_is_held if {
	fields({"cleanPodPolicy": "Running"}, 1) == set()
	fields({"cleanPodPolicy": "None"}, 0) == set()
	fields({"cleanPodPolicy": "None", "ttlSecondsAfterFinished": 60}, 1) == set()
}

test_held if {
	fields({"cleanPodPolicy": "None"}, 1) == {"spec.runPolicy.cleanPodPolicy"}
	fields({"cleanPodPolicy": "None", "ttlSecondsAfterFinished": 3600}, 1) == {"spec.runPolicy.cleanPodPolicy"}
}
