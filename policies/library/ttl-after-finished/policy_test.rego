package ttl_after_finished_test

import data.ttl_after_finished

parameters := {"mandatoryAbove": 4, "most": 10, "resources": ["nvidia.com/gpu"]}

job(run, gpus) := {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": {"runPolicy": run, "roles": [{
	"name": "Worker",
	"replicas": 2,
	"restartPolicy": "OnFailure",
	"template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}]}},
}]}}

denied(object) := found if {
	found := {v.field | some v in ttl_after_finished.violation} with input as {"object": object, "parameters": parameters}
}

warned(object) := found if {
	found := {v.field | some v in ttl_after_finished.warn} with input as {"object": object, "parameters": parameters}
}

test_a_bound if {
	denied(job({"ttlSecondsAfterFinished": 10}, 8)) == set()
	warned(job({"ttlSecondsAfterFinished": 10}, 8)) == set()
	denied(job({"ttlSecondsAfterFinished": 11}, 0)) == {"spec.runPolicy.ttlSecondsAfterFinished"}
}

test_no_bound if {
	denied(job({}, 3)) == {"spec.runPolicy.ttlSecondsAfterFinished"}
	warned(job({}, 3)) == set()
	denied(job(null, 2)) == set()
	warned(job(null, 2)) == {"spec.runPolicy.ttlSecondsAfterFinished"}
	warned(job({}, 0)) == set()
}

test_whoever_made_the_job_sees_to_it if {
	made := object.union(job({}, 8), {"metadata": {"ownerReferences": [{"controller": true}]}})
	denied(made) == set()
}
