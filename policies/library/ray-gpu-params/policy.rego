package ray_gpu_params

import data.penstock.workload

violation contains {"msg": msg, "field": said.field, "fix": fix} if {
	count(workload.roles_having(["spec", "ray", "startParams", "num-gpus"])) + count(workload.roles_having(["spec", "ray", "resources", "GPU"])) > 0
	some said in gpus_said
	not whole(said.text)
	msg := sprintf("tells Ray of %q GPUs, which it takes in whole numbers only", [said.text])
	fix := "write a whole number, or leave it out: it follows from the limits; tasks may ask for parts of a GPU"
}

violation contains {"msg": msg, "field": said.field, "fix": fix} if {
	count(workload.roles_having(["spec", "ray", "startParams", "num-gpus"])) + count(workload.roles_having(["spec", "ray", "resources", "GPU"])) > 0
	some said in gpus_said
	whole(said.text)
	has := gpus_of(said.role)
	to_number(said.text) > has
	msg := sprintf("tells Ray of %s GPUs, and the container is limited to %v", [said.text, has])
	fix := "leave it out: it follows from the limits; or raise the limits"
}

warn contains {"msg": msg, "field": said.field, "fix": fix} if {
	count(workload.roles_having(["spec", "ray", "startParams", "num-gpus"])) + count(workload.roles_having(["spec", "ray", "resources", "GPU"])) > 0
	some said in gpus_said
	whole(said.text)
	has := gpus_of(said.role)
	to_number(said.text) < has
	msg := sprintf("tells Ray of %s GPUs, and the container holds %v: the others stand idle", [said.text, has])
	fix := "leave it out: it follows from the limits; or lower the limits"
}

violation contains {"msg": msg, "field": params(role), "fix": fix} if {
	some role in workload.roles_having(["spec", "ray", "startParams", "resources"])
	some name, _ in json_in(role.spec.ray.startParams.resources)
	flag := {"CPU": "num-cpus", "GPU": "num-gpus", "memory": "memory"}[name]
	msg := sprintf("names %s, which `ray start` does not take there", [name])
	fix := sprintf("write %s instead, or leave it out: it follows from the limits", [flag])
}

violation contains {"msg": msg, "field": said.field, "fix": fix} if {
	count(workload.roles_having(["spec", "ray", "startParams", "resources"])) + count(workload.roles_having(["spec", "ray", "resources", "TPU"])) > 0
	some said in tpus_said
	claims(said.role) == 0
	has := sum([n | some device in devices(said.role); device.name == "google.com/tpu"; n := device.amounts.limits])
	said.n > has
	msg := sprintf("tells Ray of %v TPUs, and the container is limited to %v", [said.n, has])
	fix := "leave it out: it follows from the limits; or raise the limits"
}

# gpus_said is what roles tell Ray, but for what the shell is to fill in.
gpus_said := [said |
	some role in workload.roles_having(["spec", "ray"])
	some field, path in {"startParams[num-gpus]": ["startParams", "num-gpus"], "resources[GPU]": ["resources", "GPU"]}
	text := object.get(role.spec.ray, path, null)
	is_string(text)
	not contains(text, "$")
	said := {"role": role, "text": trim(text, `'" `), "field": sprintf("%s.ray.%s", [role.path, field])}
]

tpus_said := array.concat(
	[said |
		some role in workload.roles_having(["spec", "ray", "resources", "TPU"])
		n := workload.quantity(role.spec.ray.resources.TPU)
		said := {"role": role, "n": n, "field": concat("", [role.path, ".ray.resources[TPU]"])}
	],
	[said |
		some role in workload.roles_having(["spec", "ray", "startParams", "resources"])
		n := json_in(role.spec.ray.startParams.resources).TPU
		is_number(n)
		said := {"role": role, "n": n, "field": params(role)}
	],
)

params(role) := concat("", [role.path, ".ray.startParams[resources]"])

# json_in reads the value of resources, which is JSON and mostly quoted for the
# shell.
json_in(text) := found if {
	found := json.unmarshal(trim(text, "' "))
	is_object(found)
} else := found if {
	quoted := json.unmarshal(trim(text, "' "))
	found := json.unmarshal(quoted)
	is_object(found)
}

whole(text) if regex.match(`^[0-9]{1,9}$`, text)

# gpus_of are the GPUs of a role's first container, which runs Ray. It is
# undefined where something there may be GPUs, too.
gpus_of(role) := sum([n | some device in devices(role); counts(device); n := device.amounts.limits]) if {
	claims(role) == 0
	every device in devices(role) {
		workload.matches_any(device.name, array.concat(input.parameters.resources, input.parameters.noGpus))
	}
}

counts(device) if workload.matches_any(device.name, input.parameters.resources)

devices(role) := [device |
	some device in workload.devices
	device.path == concat("", [role.pod_path, ".containers[0]"])
]

claims(role) := count(workload.list_or_empty(object.get(workload.object_or_empty(role.pod), "resourceClaims", [])))
