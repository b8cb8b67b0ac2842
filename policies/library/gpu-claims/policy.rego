package gpu_claims

import data.penstock.workload

violation contains {"msg": msg, "field": field, "fix": fix} if {
	some container in workload.containers_having(["resources", "claims"])
	some i, claim in container.spec.resources.claims
	pod := pod_of(container)
	not claim.name in names(pod)
	field := sprintf("%s.resources.claims[%d].name", [container.path, i])
	msg := sprintf("uses a claim %s that the pod does not make", [claim.name])
	fix := sprintf("add %s to resourceClaims of the pod, or correct the name", [claim.name])
}

violation contains {"msg": msg, "field": concat("", [role.pod_path, ".resourceClaims"]), "fix": fix} if {
	some role in workload.roles_having(["pod", "resourceClaims"])
	claims := count(role.pod.resourceClaims)
	claims > input.parameters.maxPerPod
	msg := sprintf("makes %v claims per pod; at most %v are allowed", [claims, input.parameters.maxPerPod])
	fix := sprintf("make at most %v; one claim can ask for several devices", [input.parameters.maxPerPod])
}

violation contains {"msg": msg, "field": largest.replicas_path, "fix": fix} if {
	workload.claims_total > input.parameters.maxPerJob
	most := max([n | some pod in workload.pods; n := pod.claims * pod.replicas])
	largest := [pod | some pod in workload.pods; pod.claims * pod.replicas == most][0]
	msg := sprintf("makes %v claims in total; at most %v are allowed", [workload.claims_total, input.parameters.maxPerJob])
	fix := sprintf("use fewer pods: %v claims too many", [workload.claims_total - input.parameters.maxPerJob])
}

warn contains {"msg": msg, "field": field, "fix": fix} if {
	some role in workload.roles_having(["pod", "resourceClaims"])
	some i, claim in role.pod.resourceClaims
	not claim.name in used(role)
	field := sprintf("%s.resourceClaims[%d].name", [role.pod_path, i])
	msg := sprintf("makes a claim %s that no container uses: its devices are held idle", [claim.name])
	fix := "name it in resources.claims of a container, or take it out"
}

warn contains {"msg": msg, "field": field, "fix": fix} if {
	some role in workload.roles_having(["pod", "resourceClaims"])
	role.replicas > 1
	some i, claim in role.pod.resourceClaims
	is_string(claim.resourceClaimName)
	field := sprintf("%s.resourceClaims[%d].resourceClaimName", [role.pod_path, i])
	msg := sprintf("has %v pods share the devices of one claim, %s", [role.replicas, claim.resourceClaimName])
	fix := "use resourceClaimTemplateName, by which every pod gets a claim of its own, unless sharing is meant"
}

pod_of(container) := role.pod if {
	some role in workload.roles
	startswith(container.path, concat("", [role.pod_path, "."]))
}

names(pod) := {claim.name | some claim in workload.list_or_empty(pod.resourceClaims)} if {
	is_array(pod.resourceClaims)
} else := set()

used(role) := {claim.name |
	some container in workload.containers
	startswith(container.path, concat("", [role.pod_path, "."]))
	some claim in container.spec.resources.claims
}
