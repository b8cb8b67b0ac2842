package queue_annotations

import data.penstock.workload

violation contains {"msg": msg, "field": sprintf("metadata.annotations[%s]", [key]), "fix": fix} if {
	some key in workload.keys_like(input.object.metadata.annotations, ["kueue.x-k8s.io/podset-*"])
	msg := sprintf("%s is read from the pod template and ignored here", [key])
	fix := sprintf("move it to %s", [places])
}

violation contains {"msg": msg, "field": sprintf("metadata.annotations[%s]", [queue]), "fix": fix} if {
	some _ in workload.keys_like(input.object.metadata.annotations, ["kueue.x-k8s.io/queue-name"])
	not input.object.metadata.labels[queue]
	msg := sprintf("%s is a label; as an annotation it is ignored", [queue])
	fix := "move it to metadata.labels"
}

violation contains {"msg": msg, "field": sprintf("%s.template.metadata.labels[%s]", [role.path, queue]), "fix": fix} if {
	some role in workload.roles_having(["spec", "template", "metadata", "labels", "kueue.x-k8s.io/queue-name"])
	not input.object.metadata.labels[queue]
	msg := sprintf("%s is read from the workload and ignored in its template", [queue])
	fix := "move it to metadata.labels of the workload"
}

violation contains {"msg": msg, "field": sprintf("%s.template.metadata.annotations[%s]", [role.path, given[1]]), "fix": fix} if {
	required := workload.roles_having(["spec", "template", "metadata", "annotations", "kueue.x-k8s.io/podset-required-topology"])
	preferred := workload.roles_having(["spec", "template", "metadata", "annotations", "kueue.x-k8s.io/podset-preferred-topology"])
	unconstrained := workload.roles_having(["spec", "template", "metadata", "annotations", "kueue.x-k8s.io/podset-unconstrained-topology"])
	(count(required) + count(preferred)) + count(unconstrained) > 1
	some role in workload.roles_having(["spec", "template", "metadata", "annotations"])
	given := [key |
		some wish in ["required", "preferred", "unconstrained"]
		key := sprintf("kueue.x-k8s.io/podset-%s-topology", [wish])
		role.spec.template.metadata.annotations[key]
	]
	count(given) > 1
	msg := sprintf("%s contradicts %s", [given[1], given[0]])
	fix := "keep one of the two"
}

queue := "kueue.x-k8s.io/queue-name"

places := concat(", ", [sprintf("%s.template.metadata.annotations", [role.path]) | some role in workload.roles])
