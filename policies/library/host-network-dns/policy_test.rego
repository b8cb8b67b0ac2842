package host_network_dns_test

import data.host_network_dns

fields(pod) := found if {
	found := {v.field | some v in host_network_dns.violation} with input as {"object": {
		"apiVersion": "penstock.dev/v1",
		"kind": "TrainingJob",
		"spec": {"roles": [{"name": "Worker", "replicas": 2, "template": {"spec": pod}}]},
	}}
}

test_peers_are_found if {
	fields({}) == set()
	fields({"hostNetwork": false}) == set()
	fields({"hostNetwork": true, "dnsPolicy": "ClusterFirstWithHostNet"}) == set()
	fields({"hostNetwork": true, "dnsPolicy": "None"}) == set()
}

test_peers_are_not_found if {
	fields({"hostNetwork": true}) == {"spec.roles[0].template.spec.dnsPolicy"}
	fields({"hostNetwork": true, "dnsPolicy": "ClusterFirst"}) == {"spec.roles[0].template.spec.dnsPolicy"}
}
