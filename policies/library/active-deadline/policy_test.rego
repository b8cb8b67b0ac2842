package active_deadline_test

import data.active_deadline

parameters := {"mandatoryAbove": 4, "most": 10, "resources": ["nvidia.com/gpu"]}

job(run, gpus) := {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": {"runPolicy": run, "roles": [{
	"name": "Worker",
	"replicas": 2,
	"restartPolicy": "OnFailure",
	"template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}]}},
}]}}

denied(object) := found if {
	found := {v.field | some v in active_deadline.violation} with input as {"object": object, "parameters": parameters}
}

warned(object) := found if {
	found := {v.field | some v in active_deadline.warn} with input as {"object": object, "parameters": parameters}
}

test_a_bound if {
	denied(job({"activeDeadlineSeconds": 10}, 8)) == set()
	warned(job({"activeDeadlineSeconds": 10}, 8)) == set()
	denied(job({"activeDeadlineSeconds": 11}, 0)) == {"spec.runPolicy.activeDeadlineSeconds"}
}

test_no_bound if {
	denied(job({}, 3)) == {"spec.runPolicy.activeDeadlineSeconds"}
	warned(job({}, 3)) == set()
	denied(job(null, 2)) == set()
	warned(job(null, 2)) == {"spec.runPolicy.activeDeadlineSeconds"}
	warned(job({}, 0)) == set()
}

test_whoever_made_the_job_sees_to_it if {
	made := object.union(job({}, 8), {"metadata": {"ownerReferences": [{"controller": true}]}})
	denied(made) == set()
}

test_a_deadline_of_the_pods if {
	denied({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": {
		"activeDeadlineSeconds": 60,
		"containers": [{"resources": {"limits": {"nvidia.com/gpu": 8}}}],
	}}}}) == set()
}
