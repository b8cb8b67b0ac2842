package gang_domain_test

import data.gang_domain

node(rack, gpus) := {"metadata": {"labels": {"rack": rack}}, "status": {"allocatable": {"nvidia.com/gpu": gpus}}}

nodes := {"Node": {"a": node("r1", "8"), "b": node("r1", "8"), "c": node("r2", "4"), "d": {"metadata": {}, "status": {}}}}

found(spec) := violations if {
	violations := {[v.field, v.msg] | some v in gang_domain.violation} with data.inventory as {"cluster": {"v1": nodes}}
		with input as {"object": {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": spec}, "parameters": {"resources": ["nvidia.com/gpu"]}}
}

role(replicas, gpus, topology) := {
	"name": "Worker",
	"replicas": replicas,
	"topology": topology,
	"template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}]}},
}

test_a_domain_that_holds_them if {
	found({"roles": [role(2, 8, {"required": "rack"})]}) == set()
	found({"roles": [role(9, 8, {"preferred": "rack"})]}) == set()
	found({"gang": {"topology": {"required": "rack"}}, "roles": [role(2, 8, null)]}) == set()
}

test_too_many_for_any if {
	found({"roles": [role(3, 8, {"required": "rack"})]}) == {["spec.roles[0].topology.required", "needs 24 GPUs within one rack; the largest has 16"]}
	found({"gang": {"topology": {"required": "rack"}}, "roles": [role(3, 8, null)]}) == {["spec.gang.topology.required", "needs 24 GPUs within one rack; the largest has 16"]}
}

test_what_is_left_over_helps_nobody if {
	count(found({"roles": [role(3, 5, {"required": "rack"})]})) == 1
}

test_a_key_that_no_node_carries if {
	found({"roles": [role(1, 1, {"required": "block"})]}) == {["spec.roles[0].topology.required", "needs 1 GPUs within one block; the largest has 0"]}
}
