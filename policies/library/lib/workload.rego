# The shape of a workload, for all policies: which roles it has, which
# containers their pods have, and which devices they ask for, counted as the
# scheduler counts them.
#
# The values depend on input.object alone and are computed once for a request.
# Whatever is missing or of the wrong type counts as not there.
package penstock.workload

# roles are the groups of equal pods, in the order of the object:
#   name           Master, Worker, ...; the kind, for kinds that have no roles
#   path           where the role is, such as spec.roles[1]
#   spec           what is there
#   replicas       how many pods it is to have now
#   replicas_path  where that number is written, or would be
#   pod_path, pod  the pod spec
roles := [role |
	some i, spec in input.object.spec.roles
	is_object(spec)
	path := sprintf("spec.roles[%d]", [i])
	scale := role_scale(spec, path)
	role := {
		"name": object.get(spec, "name", ""),
		"path": path,
		"spec": spec,
		"replicas": scale.replicas,
		"replicas_path": scale.path,
		"pod_path": concat("", [path, ".template.spec"]),
		"pod": object.get(spec, ["template", "spec"], {}),
	}
] if {
	startswith(input.object.apiVersion, "penstock.dev/")
} else := [role |
	place := pod_places[input.object.kind]
	role := {
		"name": input.object.kind,
		"path": concat(".", place.owner),
		"spec": object.get(input.object, place.owner, {}),
		"replicas": number_or(object.get(input.object, place.replicas, 1), 1),
		"replicas_path": concat(".", place.replicas),
		"pod_path": concat(".", place.pod),
		"pod": object.get(input.object, place.pod, {}),
	}
]

# spec.elastic.replicas overrides the count of the role Worker.
role_scale(spec, path) := {"replicas": input.object.spec.elastic.replicas, "path": "spec.elastic.replicas"} if {
	spec.name == "Worker"
	is_number(input.object.spec.elastic.replicas)
} else := {"replicas": number_or(object.get(spec, "replicas", 1), 1), "path": concat("", [path, ".replicas"])}

# pod_places says where the kinds of Kubernetes keep their pod spec.
pod_places := {
	"Pod": {"owner": [], "pod": ["spec"], "replicas": ["spec", "replicas"]},
	"PodTemplate": {"owner": ["template"], "pod": ["template", "spec"], "replicas": ["replicas"]},
	"Job": {"owner": ["spec"], "pod": ["spec", "template", "spec"], "replicas": ["spec", "parallelism"]},
	"CronJob": {
		"owner": ["spec", "jobTemplate", "spec"],
		"pod": ["spec", "jobTemplate", "spec", "template", "spec"],
		"replicas": ["spec", "jobTemplate", "spec", "parallelism"],
	},
	"Deployment": controlled,
	"StatefulSet": controlled,
	"ReplicaSet": controlled,
	"ReplicationController": controlled,
	"DaemonSet": controlled,
}

controlled := {"owner": ["spec"], "pod": ["spec", "template", "spec"], "replicas": ["spec", "replicas"]}

# containers of all roles: type is main, init or sidecar; path is where the
# container is, spec what is there.
containers := [container |
	some role in roles
	some list in ["containers", "initContainers"]
	some i, spec in role.pod[list]
	container := {
		"role": role.name,
		"type": container_type(list, spec),
		"path": sprintf("%s.%s[%d]", [role.pod_path, list, i]),
		"spec": spec,
	}
]

container_type("containers", _) := "main"

container_type("initContainers", spec) := "sidecar" if {
	sidecar(spec)
} else := "init"

# A sidecar is an init container that keeps running.
sidecar(spec) if spec.restartPolicy == "Always"

# asks are the extended resources that containers name, one for each place:
#   path   the container
#   list   limits or requests
#   name   the resource
#   value  the quantity as it is written
asks := [ask |
	some container in containers
	some list in ["limits", "requests"]
	some name, value in container.spec.resources[list]
	extended(name)
	ask := {
		"role": container.role,
		"path": container.path,
		"list": list,
		"name": name,
		"value": value,
		"resources": container.spec.resources,
	}
]

# ask_field is the path of an ask in the way Kubernetes writes it.
ask_field(ask) := resource_field(ask.path, ask.list, ask.name)

resource_field(path, list, name) := sprintf("%s.resources.%s[%s]", [path, list, name])

# extended reports whether a resource belongs to a device plugin: its name has
# a domain, and that is not Kubernetes' own.
extended(name) if {
	contains(name, "/")
	not contains(name, "kubernetes.io/")
}

# pods counts devices for each role: demand maps the names of extended
# resources to what one pod needs of them.
pods := [pod |
	some role in roles
	pod := {
		"role": role.name,
		"replicas": role.replicas,
		"replicas_path": role.replicas_path,
		"pod_path": role.pod_path,
		"pod": role.pod,
		"demand": pod_demand(role.pod, role.name),
	}
]

# pod_demand is the larger of what runs at the same time: the containers with
# all sidecars, or an init container with the sidecars that started before it.
pod_demand(pod, role) := {name: max({running(pod, name), starting(pod, name)}) |
	some ask in asks
	ask.role == role
	name := ask.name
}

running(pod, name) := sum([amount(c, name) | some c in pod.containers]) +
	sum([amount(c, name) | some c in pod.initContainers; sidecar(c)])

# Zero is there for pods without init containers.
starting(pod, name) := max(array.concat([0], [n |
	some i, c in pod.initContainers
	not sidecar(c)
	n := amount(c, name) + sidecars_before(pod, name, i)
]))

sidecars_before(pod, name, i) := sum([amount(c, name) |
	some j, c in pod.initContainers
	j < i
	sidecar(c)
])

# amount of a resource that a container takes: its limit, which the request of
# an extended resource must equal, or the request where there is no limit.
amount(container, name) := n if {
	n := quantity(container.resources.limits[name])
} else := n if {
	n := quantity(container.resources.requests[name])
} else := 0

# quantity is the value of a Kubernetes quantity, be it written as a number or
# a string: 8, "8", "8.0", "1k", "500m". Undefined for what is none.
quantity(value) := value if {
	is_number(value)
} else := to_number(value) if {
	is_string(value)
	regex.match(`^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?$`, value)
} else := units.parse(value) if {
	is_string(value)
	regex.match(`^-?[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)$`, value)
}

# matches_any compares a name with patterns in which a trailing * stands for
# any ending.
matches_any(name, patterns) if name in patterns

matches_any(name, patterns) if {
	some pattern in patterns
	endswith(pattern, "*")
	startswith(name, trim_suffix(pattern, "*"))
}

number_or(value, _) := value if is_number(value)

number_or(value, fallback) := fallback if not is_number(value)
