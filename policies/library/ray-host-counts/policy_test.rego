package ray_host_counts_test

import data.ray_host_counts

fields(role) := found if {
	found := {v.field | some v in ray_host_counts.violation} with input as {
		"object": {"apiVersion": "penstock.dev/v1", "kind": "RayCluster", "spec": {"roles": [role]}},
		"parameters": {"topology": "topology", "resource": "google.com/tpu"},
	}
}

group(topology, hosts, tpus) := {"name": "a", "hosts": hosts, "scaling": {}, "template": {"spec": {
	"nodeSelector": {"topology": topology},
	"containers": [{"resources": {"limits": {"google.com/tpu": tpus}}}],
}}}

test_slices if {
	fields(group("4x4", 4, 4)) == set()
	fields(group("2x2x2", 2, "4")) == set()
	fields(group("4x4", 1, 4)) == {"spec.roles[0].hosts"}
	fields(group("4x4", 8, 4)) == {"spec.roles[0].hosts"}
}

test_what_is_not_known if {
	fields(group("large", 1, 4)) == set()
	fields(group("4x4", 1, 3)) == set()
	fields(group("4x4", 1, 0)) == set()
	fields({"name": "Head", "template": {"spec": group("4x4", 1, 4).template.spec}}) == set()
}
