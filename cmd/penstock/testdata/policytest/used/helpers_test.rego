package used_helpers

import data.used

pod(name) := {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}

found(name) := found if {
	found := used.violation with input as {"object": pod(name)}
}
