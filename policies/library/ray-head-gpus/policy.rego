package ray_head_gpus

import data.penstock.workload

violation contains {"msg": msg, "field": workload.device_field(device), "fix": fix} if {
	workload.most_per_pod(input.parameters.resources) > 0
	some head in workload.pods
	head.role == "Head"
	held := workload.demand_for(head, input.parameters.resources)
	held > input.parameters.most
	some group in workload.pods
	group.role != "Head"
	workload.demand_for(group, input.parameters.resources) > 0
	device := devices_of(head)[0]
	msg := sprintf("has the head hold %v GPUs beside groups of workers that have their own", [held])
	fix := "take the request out: workers compute, and num-cpus \"0\" keeps tasks off the head"
}

devices_of(head) := [device |
	some device in workload.devices
	startswith(device.path, concat("", [head.pod_path, "."]))
	workload.matches_any(device.name, input.parameters.resources)
]
