# The shape of a workload, for all policies: which roles it has, which
# containers their pods have, and which devices they ask for, counted as the
# scheduler counts them.
#
# The values (roles, containers, devices, pods, resource_names) depend on
# input.object alone. Whatever is missing or of the wrong type counts as not
# there. Penstock computes them natively, once for a request and to the same
# result, and the functions matches_any and demand_for too; this text is their
# definition, and what `opa test` runs.
package penstock.workload

# roles are the groups of equal pods, in the order of the object:
#   name           Master, Worker, ...; the kind, for kinds that have no roles
#   path           where the role is, such as spec.roles[1]
#   spec           what is there
#   replicas       how many pods it is to have now
#   replicas_path  where that number is written, or would be
#   pod_path, pod  the pod spec
roles := [role |
	some i, spec in list_or_empty(object.get(input.object, ["spec", "roles"], []))
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
	some i, spec in list_or_empty(object.get(role.pod, list, []))
	is_object(spec)
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

# devices are the extended resources that containers name, one for each
# container and name:
#   role, path   of the container
#   name         of the resource
#   written      what limits and requests hold, as it is written
#   amounts      the same as numbers, where they are numbers
devices := [device |
	some container in containers
	some name in named(container)
	extended(name)
	written := {list: value |
		some list in ["limits", "requests"]
		value := container.spec.resources[list][name]
	}
	device := {
		"role": container.role,
		"path": container.path,
		"name": name,
		"written": written,
		"amounts": {list: n |
			some list, value in written
			n := quantity(value)
		},
	}
]

# resource_names are all names in limits and requests, cpu and memory included.
resource_names := {name |
	some container in containers
	some name in named(container)
}

named(container) := {name |
	some list in ["limits", "requests"]
	resources := container.spec.resources[list]
	is_object(resources)
	some name, _ in resources
}

# resource_field is the path of a resource in the way Kubernetes writes it;
# list is limits or requests.
resource_field(path, list, name) := sprintf("%s.resources.%s[%s]", [path, list, name])

# device_field is where a device is asked for: the limit, if there is one.
device_field(device) := resource_field(device.path, "limits", device.name) if {
	_ = device.written.limits
} else := resource_field(device.path, "requests", device.name)

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
		"demand": pod_demand(role),
	}
]

# pod_demand is the larger of what runs at the same time: the containers with
# all sidecars, or an init container with the sidecars that started before it.
pod_demand(role) := {name: n |
	some device in devices
	startswith(device.path, concat("", [role.pod_path, "."]))
	name := device.name
	n := max([running(role.pod, name), starting(role.pod, name)])
}

running(pod, name) := sum(array.concat(
	[amount(c, name) | some c in list_or_empty(object.get(pod, "containers", []))],
	[amount(c, name) | some c in list_or_empty(object.get(pod, "initContainers", [])); sidecar(c)],
))

# Zero is there for pods without init containers.
starting(pod, name) := max(array.concat([0], [n |
	some i, c in list_or_empty(object.get(pod, "initContainers", []))
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
	regex.match(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?$`, value)
} else := units.parse(value) if {
	is_string(value)
	regex.match(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)$`, value)
}

# demand_for is how many devices with names that match patterns one of pods
# needs.
demand_for(pod, patterns) := sum([n |
	some name, n in pod.demand
	matches_any(name, patterns)
])

# matches_any compares a name with patterns in which a trailing * stands for
# any ending.
default matches_any(_, _) := false

matches_any(name, patterns) if name in patterns

matches_any(name, patterns) if {
	some pattern in patterns
	endswith(pattern, "*")
	startswith(name, trim_suffix(pattern, "*"))
}

number_or(value, _) := value if is_number(value)

number_or(value, fallback) := fallback if not is_number(value)

list_or_empty(value) := value if is_array(value)

list_or_empty(value) := [] if not is_array(value)
