package max_gpus_test

import data.max_gpus

pod(gpus) := {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": gpus}}}]}}

violations(gpus) := found if {
	found := max_gpus.violation with input as {"object": pod(gpus), "operation": "CREATE", "parameters": {"most": 8}}
}

test_fits if count(violations(8)) == 0

test_too_many if {
	{v.msg | some v in violations("9")} == {"asks for 9 GPUs"}
}

test_amounts[gpus] if {
	some gpus, wanted in {"1": 0, "9": 1, "16": 1}
	count(violations(gpus)) == wanted
}

todo_test_fractions if false
