package gpu_mig_mix

import data.penstock.workload

violation contains {"msg": msg, "field": workload.device_field(slice), "fix": fix} if {
	some _ in workload.names_like(input.parameters.slices)
	some _ in workload.names_like(input.parameters.whole)
	some pod in workload.pods
	workload.demand_for(pod, input.parameters.slices) > 0
	workload.demand_for(pod, input.parameters.whole) > 0
	slice := slices_of(pod)[0]
	msg := sprintf("asks for %s in a pod that asks for whole GPUs as well", [slice.name])
	fix := "ask for one of the two, or put them in different pods"
}

slices_of(pod) := [device |
	some device in workload.devices
	startswith(device.path, concat("", [pod.pod_path, "."]))
	workload.matches_any(device.name, input.parameters.slices)
]
