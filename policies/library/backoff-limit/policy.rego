package backoff_limit

import data.penstock.workload

violation contains {"msg": msg, "field": concat(".", [run.path, "backoffLimit"]), "fix": fix} if {
	some run in workload.runs_beyond("backoffLimit", input.parameters.most)
	msg := sprintf("backoffLimit is %v; at most %v tries are allowed", [run.policy.backoffLimit, input.parameters.most])
	fix := sprintf("write at most %v", [input.parameters.most])
}

violation contains missing(run) if {
	some run in workload.runs_without("backoffLimit")
	workload.total_of(input.parameters.resources) + workload.claims_total > input.parameters.mandatoryAbove
	not settled
}

warn contains missing(run) if {
	some run in workload.runs_without("backoffLimit")
	held > 0
	held <= input.parameters.mandatoryAbove
	not settled
}

held := workload.total_of(input.parameters.resources) + workload.claims_total

missing(run) := {
	"msg": sprintf("asks for %v GPUs and may be restarted without end", [held]),
	"field": concat(".", [run.path, "backoffLimit"]),
	"fix": "set a bound, for example 3",
}

# What is never restarted needs no bound. Kubernetes itself bounds its jobs.
settled if count(workload.roles_where(["spec", "restartPolicy"], ["Never"])) == count(workload.roles)

settled if input.object.kind in {"CronJob", "Job"}

settled if {
	some owner in input.object.metadata.ownerReferences
	owner.controller == true
}
