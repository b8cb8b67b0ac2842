package gpu_tolerations

import data.penstock.workload

violation contains {"msg": msg, "field": concat("", [found.role.pod_path, ".", field(found)]), "fix": fix} if {
	some found in workload.untolerated(input.parameters.taints)
	not released_later
	msg := sprintf("does not tolerate the taint %s:%s of the nodes that offer what it asks for", [found.taint.key, found.taint.effect])
	fix := sprintf("add a toleration with key %s, operator Exists and effect %s", [found.taint.key, found.taint.effect])
}

# A queue adds what its nodes need as it releases a job.
released_later if input.object.spec.suspend == true

released_later if input.object.spec.runPolicy.suspend == true

# field is what is wrong with a toleration that was meant for the taint, or the
# place for one.
field(found) := sprintf("tolerations[%d].%s", [i, wrong]) if {
	[i, wrong] := near(found)[0]
} else := "tolerations"

near(found) := [[i, wrong] |
	some i, toleration in workload.list_or_empty(found.role.pod.tolerations)
	wrong := wrong_in(toleration, found.taint)
]

wrong_in(toleration, taint) := "effect" if {
	toleration.key == taint.key
	not object.get(toleration, "effect", "") in {"", taint.effect}
} else := "value" if {
	toleration.key == taint.key
} else := "key" if {
	split(toleration.key, "/")[0] == split(taint.key, "/")[0]
}
