package gpu_ceiling

import data.penstock.workload

violation contains {"msg": msg, "field": pod_field(pod), "fix": fix} if {
	some pod in pods
	pod.gpus > input.parameters.maxPerPod
	msg := sprintf("asks for %v GPUs per pod; at most %v are allowed", [pod.gpus, input.parameters.maxPerPod])
	fix := sprintf("ask for at most %v GPUs per pod, or use more pods", [input.parameters.maxPerPod])
}

violation contains {"msg": msg, "field": pods[largest].replicas_path, "fix": fix} if {
	total > input.parameters.maxPerJob
	msg := sprintf("asks for %v GPUs in total; at most %v are allowed", [total, input.parameters.maxPerJob])
	fix := sprintf("use fewer pods or fewer GPUs per pod: %v too many", [total - input.parameters.maxPerJob])
}

# pods are those of workload, with the number of GPUs of each.
pods := [object.union(pod, {"gpus": gpus, "total": gpus * pod.replicas}) |
	some pod in workload.pods
	gpus := sum([n |
		some name, n in pod.demand
		workload.matches_any(name, input.parameters.resources)
	])
]

total := sum([pod.total | some pod in pods])

# The role that takes most is where the total is reported.
largest := min([i | some i, pod in pods; pod.total == most])

most := max([pod.total | some pod in pods])

# pod_field is where a pod asks for most GPUs.
pod_field(pod) := workload.device_field(devices[0]) if {
	asked := [device |
		some device in workload.devices
		startswith(device.path, concat("", [pod.pod_path, "."]))
		workload.matches_any(device.name, input.parameters.resources)
	]
	top := max([n | some device in asked; some n in device.amounts])
	devices := [device | some device in asked; top in device.amounts]
}
