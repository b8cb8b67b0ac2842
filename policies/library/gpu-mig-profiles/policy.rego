package gpu_mig_profiles

import data.penstock.workload

violation contains {"msg": msg, "field": workload.device_field(device), "fix": fix} if {
	some name in workload.names_like(["nvidia.com/mig-*"])
	profile := regex.replace(trim_prefix(name, "nvidia.com/mig-"), `([.-](me|gfx|all|shared))*$`, "")
	not profile in input.parameters.profiles
	some device in workload.devices
	device.name == name
	msg := sprintf("%s is no MIG profile that a card can be cut into", [name])
	fix := sprintf("use one of %s", [concat(", ", near(profile))])
}

# near are the profiles with as many slices, all where there are none.
near(profile) := alike if {
	slices := concat("", [split(profile, ".")[0], "."])
	alike := [known | some known in input.parameters.profiles; startswith(known, slices)]
	count(alike) > 0
} else := input.parameters.profiles
