package topology_keys_test

import data.topology_keys

violations(spec) := found if {
	found := topology_keys.violation with input as {
		"object": {"apiVersion": "penstock.dev/v1", "kind": "TrainingJob", "spec": spec},
		"parameters": {"allowed": ["example.com/rack"]},
	}
}

test_role if {
	violations({"roles": [{"name": "Worker", "topology": {"required": "rack"}}]}) == {{
		"msg": "rack is not a topology of this fleet",
		"field": "spec.roles[0].topology.required",
		"fix": "use one of example.com/rack",
	}}
}

test_gang if {
	fields := {v.field | some v in violations({"gang": {"topology": {"preferred": "rack"}}})}
	fields == {"spec.gang.topology.preferred"}
}

test_allowed_and_absent if {
	count(violations({"roles": [{"name": "Worker", "topology": {"required": "example.com/rack"}}], "gang": null})) == 0
	count(violations({"roles": [{"name": "Worker", "topology": null}]})) == 0
}
