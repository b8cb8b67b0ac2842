package never_backoff

import data.penstock.workload

violation contains {"msg": msg, "field": "spec.runPolicy.backoffLimit", "fix": fix} if {
	input.object.spec.runPolicy.backoffLimit > 0
	count(workload.roles_where(["spec", "restartPolicy"], ["Never"])) == count(workload.roles)
	count(workload.roles) > 0
	tries := input.object.spec.runPolicy.backoffLimit
	is_number(tries)
	msg := sprintf("%v has no effect: restartPolicy of every role is Never", [tries])
	fix := "write OnFailure or ExitCode where a pod may be tried again, or take the limit out"
}
