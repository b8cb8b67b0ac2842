package ray_redis_password

import data.penstock.workload

violation contains fault(concat("", [role.path, ".ray.startParams[redis-password]"]), "redis-password") if {
	some role in workload.roles_having(["spec", "ray", "startParams", "redis-password"])
	not invariant(role)
	plain(role.spec.ray.startParams["redis-password"])
}

violation contains fault(sprintf("%s.env[%d].value", [container.path, i]), variable.name) if {
	some container in workload.containers_setting(input.parameters.variables)
	not container.path in settled
	some i, variable in container.spec.env
	variable.name in input.parameters.variables
	plain(variable.value)
}

violation contains fault(sprintf("%s.env[%d].value", [container.path, i]), variable.name) if {
	some container in workload.containers_setting(input.parameters.addresses)
	not container.path in settled
	some i, variable in container.spec.env
	variable.name in input.parameters.addresses
	has_password(variable.value)
}

violation contains fault(sprintf("%s.env[%d].valueFrom.configMapKeyRef", [container.path, i]), variable.name) if {
	some container in workload.containers_setting(input.parameters.variables)
	not container.path in settled
	some i, variable in container.spec.env
	variable.name in input.parameters.variables
	variable.valueFrom.configMapKeyRef
}

violation contains fault(sprintf("spec.autoscaler.env[%d].value", [i]), variable.name) if {
	some i, variable in input.object.spec.autoscaler.env
	is_secret(variable)
}

violation contains fault(sprintf("spec.autoscaler.env[%d].valueFrom.configMapKeyRef", [i]), variable.name) if {
	some i, variable in input.object.spec.autoscaler.env
	variable.name in input.parameters.variables
	variable.valueFrom.configMapKeyRef
}

violation contains fault("spec.gcsFaultTolerance.redisPassword.valueFrom.configMapKeyRef", "a ConfigMap") if {
	input.object.spec.gcsFaultTolerance.redisPassword.valueFrom.configMapKeyRef
}

violation contains fault("spec.gcsFaultTolerance.redisAddress", "the address of Redis") if {
	has_password(input.object.spec.gcsFaultTolerance.redisAddress)
}

violation contains fault(sprintf("%s.%s[%d]", [container.path, list, i]), "--redis-password") if {
	some container in workload.containers_saying(["--redis-password"])
	some list in ["command", "args"]
	some i, word in workload.list_or_empty(object.get(container.spec, list, []))
	is_string(word)
	regex.match(`--redis-password[= ]+["']?[^$"'\s]`, word)
}

# With gcsFaultTolerance nothing of the kind may be said of the head's container,
# plain or not, which is no policy's business.
invariant(role) if {
	role.name == "Head"
	input.object.spec.gcsFaultTolerance
}

settled := {concat("", [role.pod_path, ".containers[0]"]) |
	some role in workload.roles
	invariant(role)
}

is_secret(variable) if {
	variable.name in input.parameters.variables
	plain(variable.value)
}

is_secret(variable) if {
	variable.name in input.parameters.addresses
	has_password(variable.value)
}

# What the shell or Kubernetes is to fill in, as a whole, is not plain. A password
# may have a $ in it.
plain(text) if {
	is_string(text)
	text != ""
	not regex.match(`^["']?\$(\([A-Za-z_][A-Za-z0-9_.-]*\)|\{?[A-Za-z_][A-Za-z0-9_]*\}?)["']?$`, text)
}

has_password(address) if {
	is_string(address)
	regex.match(`://[^/@]*:[^/@$]+@`, address)
}

fault(field, name) := {
	"msg": sprintf("%s holds a password in plain text", [name]),
	"field": field,
	"fix": "put it into a Secret, and name that in gcsFaultTolerance.redisPassword (gcsFaultToleranceOptions in v1alpha1), or by valueFrom in a variable",
}
