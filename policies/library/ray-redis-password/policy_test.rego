package ray_redis_password_test

import data.ray_redis_password

fields(spec) := found if {
	found := {v.field | some v in ray_redis_password.violation} with input as {
		"object": {"apiVersion": "penstock.dev/v1", "kind": "RayCluster", "spec": spec},
		"parameters": {"variables": ["REDIS_PASSWORD"], "addresses": ["RAY_REDIS_ADDRESS"]},
	}
}

head(password, container) := {
	"name": "Head",
	"ray": {"startParams": {"redis-password": password}},
	"template": {"spec": {"containers": [container]}},
}

container := "spec.roles[0].template.spec.containers[0]"

variable(name, value) := {"env": [{"name": name, "value": value}]}

test_parameters_and_variables if {
	fields({"roles": [head("a", variable("REDIS_PASSWORD", "b"))]}) == {
		"spec.roles[0].ray.startParams[redis-password]",
		concat("", [container, ".env[0].value"]),
	}
	fields({"roles": [head("$REDIS_PASSWORD", variable("REDIS_PASSWORD", "$(OTHER)"))]}) == set()
	fields({"roles": [head("", {"env": [{"name": "REDIS_PASSWORD", "valueFrom": {}}]})]}) == set()
}

test_a_dollar_does_not_make_it_a_reference if {
	fields({"roles": [head("pa$$word", variable("REDIS_PASSWORD", "$3cret"))]}) == {
		"spec.roles[0].ray.startParams[redis-password]",
		concat("", [container, ".env[0].value"]),
	}
	fields({"roles": [head("${REDIS_PASSWORD}", variable("REDIS_PASSWORD", "a-$(OTHER)"))]}) == {concat("", [container, ".env[0].value"])}
}

test_config_maps_are_no_secrets if {
	from := {"configMapKeyRef": {"name": "a", "key": "b"}}
	fields({"roles": [head("", {"env": [{"name": "REDIS_PASSWORD", "valueFrom": from}]})]}) == {concat("", [container, ".env[0].valueFrom.configMapKeyRef"])}
	fields({"gcsFaultTolerance": {"redisPassword": {"valueFrom": from}}}) == {"spec.gcsFaultTolerance.redisPassword.valueFrom.configMapKeyRef"}
}

test_the_autoscaler if {
	fields({"autoscaler": {"env": [
		{"name": "REDIS_PASSWORD", "value": "a"},
		{"name": "RAY_REDIS_ADDRESS", "value": "redis://a:b@redis:6379"},
		{"name": "REDIS_PASSWORD", "valueFrom": {"configMapKeyRef": {}}},
		{"name": "REDIS_PASSWORD", "valueFrom": {"secretKeyRef": {}}},
		{"name": "OTHER", "value": "a"},
	]}}) == {
		"spec.autoscaler.env[0].value",
		"spec.autoscaler.env[1].value",
		"spec.autoscaler.env[2].valueFrom.configMapKeyRef",
	}
}

test_what_is_refused_anyhow if {
	fields({"gcsFaultTolerance": {}, "roles": [head("a", variable("REDIS_PASSWORD", "b"))]}) == set()
}

test_addresses if {
	fields({"gcsFaultTolerance": {"redisAddress": "redis://:a@redis:6379"}}) == {"spec.gcsFaultTolerance.redisAddress"}
	fields({"gcsFaultTolerance": {"redisAddress": "redis://redis:6379"}}) == set()
	fields({"roles": [head("", variable("RAY_REDIS_ADDRESS", "redis://a:b@redis:6379"))]}) == {concat("", [container, ".env[0].value"])}
}

test_command_lines if {
	fields({"roles": [head("", {"args": ["ray start --head --redis-password=a"]})]}) == {concat("", [container, ".args[0]"])}
	fields({"roles": [head("", {"args": ["ray start --head --redis-password=$REDIS_PASSWORD"]})]}) == set()
	fields({"roles": [head("", {"args": ["ray start --head --redis-password \"$REDIS_PASSWORD\""]})]}) == set()
}
