package gpu_mig_profiles

import data.penstock.workload

violation contains {"msg": msg, "field": workload.device_field(device), "fix": fix(name, profile)} if {
	some name in workload.names_like(["nvidia.com/mig-*"])
	profile := regex.replace(trim_prefix(name, "nvidia.com/mig-"), `([.-](me|gfx|all|shared))*$`, "")
	not profile in input.parameters.profiles
	some device in workload.devices
	device.name == name
	msg := sprintf("%s is no MIG profile that a card can be cut into", [name])
}

# What is written as profiles are asks for something that no card has; what is
# not is misspelt.
fix(name, profile) := sprintf("did you mean %s?", [replace(name, profile, most_alike(lower(profile)))]) if {
	profile != ""
	not regex.match(`^[0-9]+g\.[0-9]+gb$`, profile)
} else := sprintf("use one of %s", [concat(", ", near(profile))])

# near are the profiles with as many slices; where there are none, those with as
# much memory; and all where there are none of these.
near(profile) := alike if {
	slices := concat("", [split(profile, ".")[0], "."])
	alike := [known | some known in input.parameters.profiles; startswith(known, slices)]
	count(alike) > 0
} else := alike if {
	memory := concat("", [".", split(profile, ".")[1]])
	alike := [known | some known in input.parameters.profiles; endswith(known, memory)]
	count(alike) > 0
} else := input.parameters.profiles

# most_alike is the profile that shares the largest part of its pairs of letters
# with a text; the first of equals, and none if no profile shares any.
most_alike(text) := input.parameters.profiles[best] if {
	pairs := letter_pairs(text)
	alike := [part |
		some known in input.parameters.profiles
		of := letter_pairs(known)
		part := count(pairs & of) / count(pairs | of)
	]
	max(alike) > 0
	best := min([i | some i, part in alike; part == max(alike)])
}

letter_pairs(text) := {substring(text, i, 2) | some i in numbers.range(0, count(text) - 2)}
