package idle_test

import data.idle

pod(name) := {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}

found(name) := found if {
	found := idle.violation with input as {"object": pod(name)}
}
