package gpu_resource_names

import data.penstock.workload

violation contains {"msg": msg, "field": field, "fix": fix} if {
	some name in workload.names_beyond(input.parameters.allowed)
	unknown(name)
	some container in workload.containers
	list := first_list(container.spec.resources, name)
	msg := sprintf("%s is not a known accelerator", [name])
	field := workload.resource_field(container.path, list, name)
	fix := sprintf("did you mean %s?", [nearest(name)])
}

# A name in both lists is reported once.
first_list(resources, name) := "limits" if {
	_ = resources.limits[name]
} else := "requests" if {
	_ = resources.requests[name]
}

unknown(name) if {
	not startswith(name, "hugepages-")
	likely(lower(name))
}

# A device that only moves data for accelerators is none. The vendor's domain
# says nothing of what is behind the slash.
likely(name) if {
	regex.match(input.parameters.looksLikeAccelerator, regex.replace(name, ".*/", ""))
	not regex.match(input.parameters.looksLikeNetwork, name)
}

# Letters in the wrong order, behind a known domain: nvidia.com/gup.
likely(name) if {
	domain := concat("", [split(name, "/")[0], "/"])
	strings.any_prefix_match(input.parameters.allowed, domain)
	letters := sort(split(name, ""))
	some known in input.parameters.allowed
	count(known) == count(name)
	letters == sort(split(known, ""))
}

# nearest is the known name that has most of this one's pairs of letters; the
# first of equals.
nearest(name) := replace(input.parameters.allowed[best], "*", "<profile>") if {
	pairs := letter_pairs(lower(name))
	shared := [count(pairs & letter_pairs(lower(known))) | some known in input.parameters.allowed]
	best := min([i | some i, n in shared; n == max(shared)])
}

letter_pairs(text) := {substring(text, i, 2) | some i in numbers.range(0, count(text) - 2)}
