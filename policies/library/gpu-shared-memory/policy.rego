package gpu_shared_memory

import data.penstock.workload

violation contains {"msg": msg, "field": field(container), "fix": fix} if {
	some container in workload.cramped(input.parameters.resources, input.parameters.from)
	msg := "has several GPUs and no more than 64 MiB of memory that their processes can share"
	fix := "mount a volume of emptyDir with medium Memory at /dev/shm"
}

# Where the volume is missing, or not mounted, or not of memory.
field(container) := sprintf("%s.volumes[%d].emptyDir.medium", [container.pod_path, on_disk(container)[0]]) if {
	count(on_disk(container)) > 0
} else := concat("", [container.path, ".volumeMounts"]) if {
	some volume in workload.list_or_empty(container.pod.volumes)
	volume.emptyDir.medium == "Memory"
} else := concat("", [container.pod_path, ".volumes"])

on_disk(container) := [i |
	some mount in workload.list_or_empty(container.spec.volumeMounts)
	mount.mountPath in {"/dev/shm", "/dev/shm/"}
	some i, volume in workload.list_or_empty(container.pod.volumes)
	volume.name == mount.name
	is_object(volume.emptyDir)
]
