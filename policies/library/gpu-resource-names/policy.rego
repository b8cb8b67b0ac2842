package gpu_resource_names

import data.penstock.workload

violation contains {"msg": msg, "field": workload.resource_field(container.path, list, name), "fix": fix} if {
	some container in workload.containers
	some list in ["limits", "requests"]
	some name, _ in container.spec.resources[list]
	suspicious(name)
	not repeated(container, list, name)
	msg := sprintf("%s is not a known accelerator", [name])
	fix := sprintf("did you mean %s?", [nearest(name)])
}

# A name that is in limits as well is reported there only.
repeated(container, list, name) if {
	list == "requests"
	some other, _ in container.spec.resources.limits
	other == name
}

# Kubernetes' own resources have no domain, or its own.
native := {"cpu", "memory", "ephemeral-storage", "storage"}

suspicious(name) if {
	not name in native
	not startswith(name, "hugepages-")
	not workload.matches_any(name, input.parameters.allowed)
	likely(lower(name))
}

# A device that only moves data for accelerators is none.
likely(name) if {
	regex.match(input.parameters.looksLikeAccelerator, own_part(name))
	not regex.match(input.parameters.looksLikeNetwork, name)
}

# Letters in the wrong order: nvidia.com/gup.
likely(name) if {
	letters := sort(split(name, ""))
	some known in input.parameters.allowed
	letters == sort(split(known, ""))
}

# The vendor's domain alone says nothing of what is behind the slash, except
# where the domain is spelt wrong.
own_part(name) := substring(name, indexof(name, "/") + 1, -1) if {
	some known in input.parameters.allowed
	startswith(name, concat("", [split(known, "/")[0], "/"]))
} else := name

# nearest is the known name that shares most pairs of letters with this one.
nearest(name) := spelt(best) if {
	pairs := letter_pairs(lower(name))
	scores := {known: score |
		some known in input.parameters.allowed
		other := letter_pairs(lower(known))
		score := (2 * count(pairs & other)) / (count(pairs) + count(other))
	}
	top := max([score | some score in scores])
	best := min([known | some known, score in scores; score == top])
}

letter_pairs(text) := {substring(text, i, 2) | some i in numbers.range(0, count(text) - 2)}

spelt(pattern) := replace(pattern, "*", "<profile>")
