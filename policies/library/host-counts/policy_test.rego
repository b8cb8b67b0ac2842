package host_counts_test

import data.host_counts

job(framework, roles) := {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": {
	"framework": framework,
	"mpi": {"slotsPerWorker": 2},
	"roles": roles,
}}

fields(object) := found if {
	found := {v.field | some v in host_counts.violation} with input as {"object": object, "parameters": {"resources": ["nvidia.com/gpu"]}}
}

role(name, replicas, container) := {"name": name, "replicas": replicas, "template": {"spec": {"containers": [container]}}}

launcher(command) := job("MPI", [role("Launcher", 1, {"command": command}), role("Worker", 2, {})])

worker(container) := job("PyTorch", [role("Worker", 2, container)])

test_processes_of_mpi if {
	fields(launcher(["mpirun", "-np", "4", "train"])) == set()
	fields(launcher(["mpirun", "-np", "8", "train"])) == {"spec.roles[0].template.spec.containers[0].command[2]"}
	fields(launcher(["sh", "-c", "mpirun --allow-run-as-root -np 8 train"])) == {"spec.roles[0].template.spec.containers[0].command[2]"}
	fields(launcher(["mpirun", "--oversubscribe", "-np", "8", "train"])) == set()
	fields(launcher(["mpirun", "-np", "$(N)", "train"])) == set()
	fields(launcher(["sort", "-n", "8"])) == set()
}

test_nodes_of_torchrun if {
	fields(worker({"command": ["torchrun", "--nnodes=2", "train.py"]})) == set()
	fields(worker({"command": ["torchrun", "--nnodes=4", "train.py"]})) == {"spec.roles[0].template.spec.containers[0].command[1]"}
	fields(worker({"args": ["--nnodes", "4"]})) == {"spec.roles[0].template.spec.containers[0].args[1]"}
	fields(worker({"args": ["--nnodes", "1:4"]})) == set()
}

test_processes_of_torchrun if {
	gpus := {"resources": {"limits": {"nvidia.com/gpu": 8}}}
	fields(worker(object.union(gpus, {"args": ["--nproc_per_node=8"]}))) == set()
	fields(worker(object.union(gpus, {"args": ["--nproc-per-node", "4"]}))) == {"spec.roles[0].template.spec.containers[0].args[1]"}
	fields(worker({"args": ["--nproc_per_node=4"]})) == set()
}

test_hosts_of_a_slice if {
	fields(slice(4)) == set()
	fields(slice(8)) == set()
	fields(slice(3)) == {"spec.roles[0].replicas"}
}

slice(replicas) := job("JAX", [{"name": "Worker", "replicas": replicas, "template": {"spec": {
	"nodeSelector": {"cloud.google.com/gke-tpu-topology": "4x4"},
	"containers": [{"resources": {"limits": {"google.com/tpu": 4}}}],
}}}])
