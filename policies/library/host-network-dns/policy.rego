package host_network_dns

import data.penstock.workload

violation contains {"msg": msg, "field": concat("", [role.pod_path, ".dnsPolicy"]), "fix": fix} if {
	some role in workload.roles_where(["pod", "hostNetwork"], [true])
	workload.pods_total > 1
	not object.get(role.pod, "dnsPolicy", "") in {"ClusterFirstWithHostNet", "None"}
	msg := "is on the network of its node, and finds its peers by name only with dnsPolicy ClusterFirstWithHostNet"
	fix := "write it; Penstock adds it to training jobs where it is missing, other controllers do not"
}
