package backoff_limit_test

import data.backoff_limit

parameters := {"mandatoryAbove": 4, "most": 10, "resources": ["nvidia.com/gpu"]}

job(run, gpus) := {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": {"runPolicy": run, "roles": [{
	"name": "Worker",
	"replicas": 2,
	"restartPolicy": "OnFailure",
	"template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}]}},
}]}}

denied(object) := found if {
	found := {v.field | some v in backoff_limit.violation} with input as {"object": object, "parameters": parameters}
}

warned(object) := found if {
	found := {v.field | some v in backoff_limit.warn} with input as {"object": object, "parameters": parameters}
}

test_a_bound if {
	denied(job({"backoffLimit": 3}, 8)) == set()
	warned(job({"backoffLimit": 3}, 8)) == set()
	denied(job({"backoffLimit": 11}, 0)) == {"spec.runPolicy.backoffLimit"}
}

test_no_bound if {
	denied(job({}, 3)) == {"spec.runPolicy.backoffLimit"}
	warned(job({}, 3)) == set()
	denied(job(null, 2)) == set()
	warned(job(null, 2)) == {"spec.runPolicy.backoffLimit"}
	warned(job({}, 0)) == set()
}

test_whoever_made_the_job_sees_to_it if {
	made := object.union(job({}, 8), {"metadata": {"ownerReferences": [{"controller": true}]}})
	denied(made) == set()
}

test_what_is_never_restarted if {
	denied({"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": {"roles": [{
		"name": "Worker",
		"restartPolicy": "Never",
		"template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 64}}}]}},
	}]}}) == set()
}
