package gpu_roles

import data.penstock.workload

violation contains {"msg": msg, "field": workload.device_field(device), "fix": fix} if {
	some role in workload.roles_where(["name"], input.parameters.roles)
	not computes(role)
	device := devices_of(role)[0]
	msg := sprintf("role %s asks for %s and does not compute", [role.name, device.name])
	fix := fixes(role.name)
}

fixes("Launcher") := "take the request out, or set mpi.launcher to LauncherAsWorker"

fixes(name) := "take the request out: the workers compute" if name != "Launcher"

computes(role) if {
	role.name == "Launcher"
	input.object.spec.mpi.launcher == "LauncherAsWorker"
}

devices_of(role) := [device |
	some device in workload.devices
	startswith(device.path, concat("", [role.pod_path, "."]))
	workload.matches_any(device.name, input.parameters.resources)
	some n in device.amounts
	n > 0
]
