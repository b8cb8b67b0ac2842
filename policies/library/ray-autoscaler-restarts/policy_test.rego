package ray_autoscaler_restarts_test

import data.ray_autoscaler_restarts

found(autoscaler, roles) := result if {
	cluster := {"apiVersion": "penstock.dev/v1", "kind": "RayCluster", "spec": {"autoscaler": autoscaler, "roles": roles}}
	result := {
		"deny": {v.field | some v in ray_autoscaler_restarts.violation},
		"warn": {v.field | some v in ray_autoscaler_restarts.warn},
	} with input as {"object": cluster}
}

nothing := {"deny": set(), "warn": set()}

enabled(version) := {"mode": "Enabled", "version": version}

restarting := [
	{"name": "Head", "restartPolicy": "Always"},
	{"name": "a", "template": {"spec": {"restartPolicy": "OnFailure"}}},
	{"name": "b", "template": {"spec": {"restartPolicy": "Never"}}},
	{"name": "c"},
]

test_second_version_takes_head_and_workers if {
	found(enabled("v2"), restarting) == {
		"deny": {"spec.roles[0].restartPolicy", "spec.roles[1].template.spec.restartPolicy"},
		"warn": set(),
	}
}

test_first_version_takes_workers if {
	found(enabled("v1"), restarting) == {"deny": set(), "warn": {"spec.roles[1].template.spec.restartPolicy", "spec.roles[3].template.spec.restartPolicy"}}
}

test_first_version_takes_what_the_role_says if {
	found(enabled("v1"), [{"name": "Head"}, {"name": "a", "restartPolicy": "Never"}]) == nothing
}

test_no_autoscaler if {
	found({"mode": "Disabled", "version": "v2"}, restarting) == nothing
	found(null, restarting) == nothing
}
