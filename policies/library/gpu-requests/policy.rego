package gpu_requests

import data.penstock.workload

violation contains {"msg": msg, "field": field, "fix": fix} if {
	some device in workload.unsound_devices
	suspect(device)
	some list, value in device.written
	not whole_in(device, list)
	not repeats(device, list)
	msg := sprintf("asks for %v of %s, which comes in whole devices only", [value, device.name])
	field := workload.resource_field(device.path, list, device.name)
	fix := "ask for a whole number; to share a device use a MIG profile or a shared resource"
}

violation contains {"msg": msg, "field": field, "fix": fix} if {
	some device in workload.unsound_devices
	suspect(device)
	workload.whole(device.amounts.requests)
	not limited(device)
	msg := sprintf("requests %v of %s without a limit", [device.written.requests, device.name])
	field := workload.resource_field(device.path, "requests", device.name)
	fix := sprintf("set limits to %v as well", [device.written.requests])
}

violation contains {"msg": msg, "field": field, "fix": fix} if {
	some device in workload.unsound_devices
	suspect(device)
	workload.whole(device.amounts.requests)
	workload.whole(device.amounts.limits)
	device.amounts.requests != device.amounts.limits
	msg := sprintf("requests %v of %s and is limited to %v", [device.written.requests, device.name, device.written.limits])
	field := workload.resource_field(device.path, "requests", device.name)
	fix := sprintf("write %v in both places, or leave the request out", [device.written.limits])
}

# By default every extended resource is held to the rule, as Kubernetes holds
# it; the names are patterns.
suspect(device) if workload.matches_any(device.name, input.parameters.resources)

whole_in(device, list) if workload.whole(device.amounts[list])

# A request that says what the limit says needs no words of its own: defaults
# write it where the author gave a limit only.
repeats(device, "requests") if device.amounts.requests == device.amounts.limits

limited(device) if _ = device.written.limits
