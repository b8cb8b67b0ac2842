package clean_pod_policy

import data.penstock.workload

violation contains {"msg": msg, "field": "spec.runPolicy.cleanPodPolicy", "fix": fix} if {
	input.object.spec.runPolicy.cleanPodPolicy == "None"
	workload.total_of(input.parameters.resources) + workload.claims_total > 0
	not deleted_soon
	gpus := workload.total_of(input.parameters.resources) + workload.claims_total
	msg := sprintf("leaves pods running when the job has ended, up to %v GPUs among them", [gpus])
	fix := "write Running: finished pods and their logs stay"
}

deleted_soon if {
	ttl := input.object.spec.runPolicy.ttlSecondsAfterFinished
	is_number(ttl)
	ttl <= input.parameters.heldAtMost
}
