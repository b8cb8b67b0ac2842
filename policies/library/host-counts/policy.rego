package host_counts

import data.penstock.workload

# mpirun -np 16
violation contains {"msg": msg, "field": found.field, "fix": fix} if {
	some container in workload.containers_saying(["-np", "-n"])
	container.role == "Launcher"
	some found in numbers_after(container, ["-np", "-n", "--np", "--n"], `(?:^|\s)--?np?[= ]+([0-9]+)(?:\s|$)`)
	says_any(container, ["mpirun", "mpiexec", "horovodrun", "mpiexec.hydra"])
	not says_any(container, ["oversubscribe", "OVERSUBSCRIBE"])
	found.n > slots
	msg := sprintf("starts %v processes, and the job has %v slots", [found.n, slots])
	fix := sprintf("start at most %v, or raise mpi.slotsPerWorker or the number of workers", [slots])
}

# torchrun --nnodes 4
violation contains {"msg": msg, "field": found.field, "fix": fix} if {
	some container in workload.containers_saying(["--nnodes"])
	not input.object.spec.elastic
	some found in numbers_after(container, ["--nnodes"], `(?:^|\s)--nnodes[= ]+([0-9]+)(?:\s|$)`)
	found.n != workload.pods_total
	msg := sprintf("waits for %v nodes, and the job has %v pods", [found.n, workload.pods_total])
	fix := "leave --nnodes out: the environment of the pods says it"
}

# torchrun --nproc-per-node 8
violation contains {"msg": msg, "field": found.field, "fix": fix} if {
	some container in workload.containers_saying(["--nproc"])
	names := ["--nproc_per_node", "--nproc-per-node"]
	some found in numbers_after(container, names, `(?:^|\s)--nproc[_-]per[_-]node[= ]+([0-9]+)(?:\s|$)`)
	gpus := workload.container_demand(container.spec, input.parameters.resources)
	gpus > 0
	found.n != gpus
	msg := sprintf("starts %v processes in a container that has %v GPUs", [found.n, gpus])
	fix := sprintf("start %v, or leave it out: the environment of the pods says it", [gpus])
}

# A slice of TPUs is all hosts of its topology, or several such slices.
violation contains {"msg": msg, "field": role.replicas_path, "fix": fix} if {
	some role in workload.roles_having(["pod", "nodeSelector", "cloud.google.com/gke-tpu-topology"])
	some pod in workload.pods
	pod.pod_path == role.pod_path
	each := pod.demand["google.com/tpu"]
	each > 0
	topology := role.pod.nodeSelector["cloud.google.com/gke-tpu-topology"]
	regex.match(`^[0-9]{1,4}(x[0-9]{1,4}){1,2}$`, topology)
	chips := product([to_number(side) | some side in split(topology, "x")])
	hosts := chips / each
	role.replicas % hosts != 0
	msg := sprintf("has %v pods with %v of the %v TPUs of topology %s each: %v hosts make a slice", [role.replicas, each, chips, topology, hosts])
	fix := sprintf("write %v, or a multiple of it", [hosts])
}

# slots are those of all hosts, at full size.
slots := hosts * object.get(input.object.spec, ["mpi", "slotsPerWorker"], 1)

hosts := sum([n | some role in workload.roles; n := hosts_of(role)])

hosts_of(role) := max([role.replicas, object.get(input.object.spec, ["elastic", "maxReplicas"], 0)]) if role.name == "Worker"

hosts_of(role) := role.replicas if {
	role.name == "Launcher"
	input.object.spec.mpi.launcher == "LauncherAsWorker"
}

# numbers_after finds what follows a flag: as a word of its own, after = or, in
# a line for the shell, after a blank.
numbers_after(container, flags, pattern) := {{"n": n, "field": sprintf("%s.%s[%d]", [container.path, list, i])} |
	some list in ["command", "args"]
	some i, word in workload.list_or_empty(object.get(container.spec, list, []))
	n := number_in(word, pattern)
} | {{"n": n, "field": sprintf("%s.%s[%d]", [container.path, list, i + 1])} |
	some list in ["command", "args"]
	words := workload.list_or_empty(object.get(container.spec, list, []))
	some i, word in words
	word in flags
	regex.match(`^[0-9]{1,9}$`, words[i + 1])
	n := to_number(words[i + 1])
}

number_in(word, pattern) := to_number(regex.find_all_string_submatch_n(pattern, word, 1)[0][1])

says_any(container, words) if workload.says(container.spec, words)
