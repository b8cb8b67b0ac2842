package gpu_ceiling

import data.penstock.workload

violation contains {"msg": msg, "field": pod_field(pod), "fix": fix} if {
	workload.most_per_pod(input.parameters.resources) > input.parameters.maxPerPod
	some i, gpus in gpus_per_pod
	gpus > input.parameters.maxPerPod
	pod := workload.pods[i]
	msg := sprintf("asks for %v GPUs per pod; at most %v are allowed", [gpus, input.parameters.maxPerPod])
	fix := sprintf("ask for at most %v GPUs per pod, or use more pods", [input.parameters.maxPerPod])
}

violation contains {"msg": msg, "field": workload.pods[largest].replicas_path, "fix": fix} if {
	total := workload.total_of(input.parameters.resources)
	total > input.parameters.maxPerJob
	msg := sprintf("asks for %v GPUs in total; at most %v are allowed", [total, input.parameters.maxPerJob])
	fix := sprintf("use fewer pods or fewer GPUs per pod: %v too many", [total - input.parameters.maxPerJob])
}

# In the order of workload.pods, as what follows.
gpus_per_pod := [workload.demand_for(pod, input.parameters.resources) | some pod in workload.pods]

gpus_per_role := [gpus |
	some i, each in gpus_per_pod
	gpus := each * workload.pods[i].replicas
]

# The role that takes most is where the total is reported.
largest := min([i | some i, gpus in gpus_per_role; gpus == max(gpus_per_role)])

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
