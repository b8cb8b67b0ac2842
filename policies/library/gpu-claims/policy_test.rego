package gpu_claims_test

import data.gpu_claims

spec(replicas, pod) := {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": replicas, "template": {"spec": pod}}}

denied(replicas, pod) := found if {
	found := {v.field | some v in gpu_claims.violation} with input as {"object": spec(replicas, pod), "parameters": {"maxPerPod": 2, "maxPerJob": 4}}
}

warned(replicas, pod) := found if {
	found := {v.field | some v in gpu_claims.warn} with input as {"object": spec(replicas, pod), "parameters": {"maxPerPod": 2, "maxPerJob": 4}}
}

uses(names) := {"name": "a", "resources": {"claims": [{"name": name} | some name in names]}}

made(names) := [{"name": name, "resourceClaimTemplateName": "gpu"} | some name in names]

test_a_claim_that_is_used if {
	pod := {"containers": [uses(["a"])], "resourceClaims": made(["a"])}
	denied(1, pod) == set()
	warned(1, pod) == set()
}

test_a_claim_that_is_not_made if {
	denied(1, {"containers": [uses(["a", "b"])], "resourceClaims": made(["a"])}) == {"spec.template.spec.containers[0].resources.claims[1].name"}
	denied(1, {"containers": [uses(["a"])]}) == {"spec.template.spec.containers[0].resources.claims[0].name"}
}

test_a_claim_that_is_not_used if {
	warned(1, {"containers": [uses(["a"])], "resourceClaims": made(["a", "b"])}) == {"spec.template.spec.resourceClaims[1].name"}
}

test_ceilings if {
	denied(1, {"containers": [uses(["a"])], "resourceClaims": made(["a", "b", "c"])}) == {"spec.template.spec.resourceClaims"}
	denied(5, {"containers": [uses(["a"])], "resourceClaims": made(["a"])}) == {"spec.replicas"}
}

test_one_claim_for_all if {
	pod := {"containers": [uses(["a"])], "resourceClaims": [{"name": "a", "resourceClaimName": "shared"}]}
	warned(1, pod) == set()
	warned(2, pod) == {"spec.template.spec.resourceClaims[0].resourceClaimName"}
}
