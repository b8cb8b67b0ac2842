package gpu_visible_devices

import data.penstock.workload

violation contains {"msg": msg, "field": field, "fix": fix} if {
	some container in workload.containers_setting(input.parameters.variables)
	some i, variable in container.spec.env
	variable.name in input.parameters.variables
	is_string(variable.value)
	not variable.value in input.parameters.harmless
	field := sprintf("%s.env[%d].value", [container.path, i])
	msg := sprintf("%s=%s takes GPUs that the container did not ask for", [variable.name, variable.value])
	fix := "take the variable out: the device plugin sets it to what was asked for"
}
