package gpu_node_selectors

import data.penstock.workload

violation contains {"msg": msg, "field": concat(".", [found.role.pod_path, found.pin.field]), "fix": fix} if {
	some found in workload.mispinned(input.parameters.absent)
	msg := sprintf("asks for %s and for nodes with %s=%s, which do not offer it", [
		asked(found),
		found.pin.key,
		concat("|", [sprintf("%v", [value]) | some value in found.pin.values]),
	])
	fix := "take the selector out, or select nodes by a label of those that offer it"
}

violation contains {"msg": msg, "field": sprintf("%s.nodeSelector[%s]", [role.pod_path, count_label]), "fix": fix} if {
	some role in workload.roles_having(["pod", "nodeSelector", "nvidia.com/gpu.count"])
	has := to_number(role.pod.nodeSelector[count_label])
	some pod in workload.pods
	pod.pod_path == role.pod_path
	needs := pod.demand["nvidia.com/gpu"]
	needs > has
	msg := sprintf("asks for %v GPUs per pod and for nodes with %v", [needs, has])
	fix := sprintf("ask for at most %v, or select larger nodes", [has])
}

count_label := "nvidia.com/gpu.count"

asked(found) := concat(", ", [name |
	some pod in workload.pods
	pod.pod_path == found.role.pod_path
	some name, n in pod.demand
	n > 0
	workload.matches_any(name, found.row.resources)
])
