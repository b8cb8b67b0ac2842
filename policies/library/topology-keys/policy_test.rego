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

warned(pod) := found if {
	found := {v.field | some v in topology_keys.warn} with input as {
		"object": {"apiVersion": "v1", "kind": "Pod", "spec": pod},
		"parameters": {"allowed": ["example.com/rack"]},
	}
}

test_warned_of_in_pods if {
	affinity := {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "example.com/rack"}, {"topologyKey": "rack"}]}
	warned({"affinity": {"podAffinity": affinity}}) == {"spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[1].topologyKey"}
	warned({"topologySpreadConstraints": [{"topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}]}) == {"spec.topologySpreadConstraints[0].topologyKey"}
	warned({"topologySpreadConstraints": [{"topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}]}) == set()
}
