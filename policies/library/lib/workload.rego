# The shape of a workload, for all policies: which roles it has, which
# containers their pods have, and which devices they ask for, counted as the
# scheduler counts them.
#
# The values (roles, containers, devices, pods, runs and those counted from
# them) depend on input.object alone. Whatever is missing or of the wrong type
# counts as not there. Penstock computes them natively, once for a request and
# to the same result, and so the functions that select from them; this text is
# their definition, and what `opa test` runs.
#
# A rule that begins by selecting what is at fault costs next to nothing where
# nothing is: see docs/library.md.
package penstock.workload

# roles are the groups of equal pods, in the order of the object:
#   name           Master, Worker, ...; the kind, for kinds that have no roles
#   path           where the role is, such as spec.roles[1]
#   spec           what is there
#   replicas       how many pods it has at a time; of a suspended one, how many
#                  it would have
#   replicas_path  where that number is written, or would be; what decides it,
#                  for kinds that have none
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
		"replicas": placed_replicas(place),
		"replicas_path": concat(".", place.replicas),
		"pod_path": concat(".", place.pod),
		"pod": object.get(input.object, place.pod, {}),
	}
]

# spec.elastic.replicas overrides the count of the role Worker. Each replica of
# a role is as many pods as it has hosts.
role_scale(spec, path) := {"replicas": input.object.spec.elastic.replicas, "path": "spec.elastic.replicas"} if {
	spec.name == "Worker"
	is_number(input.object.spec.elastic.replicas)
} else := {"replicas": scaled.n * number_or(object.get(spec, "hosts", 1), 1), "path": concat(".", [path, scaled.field])} if {
	scaled := scaled_replicas(spec)
}

# scaled_replicas are those of a role, within its scaling and from its smallest
# number on, and what decides them.
scaled_replicas(spec) := within(spec.scaling, max([0, number_or(object.get(spec, "replicas", 0), 0)])) if {
	is_object(spec.scaling)
} else := {"n": number_or(object.get(spec, "replicas", 1), 1), "field": "replicas"}

within(scaling, n) := {"n": least, "field": "scaling.minReplicas"} if {
	least := scaling.minReplicas
	is_number(least)
	min([n, number_or(object.get(scaling, "maxReplicas", n), n)]) < least
} else := {"n": most, "field": "scaling.maxReplicas"} if {
	most := scaling.maxReplicas
	is_number(most)
	n > most
} else := {"n": n, "field": "replicas"}

# placed_replicas is one where nothing else is said. Of a job no more pods run
# than are to complete.
placed_replicas(place) := min(array.concat(
	[number_or(object.get(input.object, place.replicas, 1), 1)],
	[n | n := object.get(input.object, place.completions, null); is_number(n)],
))

# pod_places says where the kinds of Kubernetes keep their pod spec.
pod_places := {
	"Pod": {"owner": [], "pod": ["spec"], "replicas": ["spec"]},
	"PodTemplate": {"owner": ["template"], "pod": ["template", "spec"], "replicas": ["template"]},
	"Job": {
		"owner": ["spec"],
		"pod": ["spec", "template", "spec"],
		"replicas": ["spec", "parallelism"],
		"completions": ["spec", "completions"],
	},
	"CronJob": {
		"owner": ["spec", "jobTemplate", "spec"],
		"pod": ["spec", "jobTemplate", "spec", "template", "spec"],
		"replicas": ["spec", "jobTemplate", "spec", "parallelism"],
		"completions": ["spec", "jobTemplate", "spec", "completions"],
	},
	"Deployment": controlled,
	"StatefulSet": controlled,
	"ReplicaSet": controlled,
	"ReplicationController": controlled,
	# How many nodes there are is not known.
	"DaemonSet": {"owner": ["spec"], "pod": ["spec", "template", "spec"], "replicas": ["spec", "template"]},
}

controlled := {"owner": ["spec"], "pod": ["spec", "template", "spec"], "replicas": ["spec", "replicas"]}

# containers of all roles: type is main, init, sidecar or ephemeral; path is
# where the container is, spec what is there.
containers := [container |
	some role in roles
	some list in ["containers", "initContainers", "ephemeralContainers"]
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

container_type("ephemeralContainers", _) := "ephemeral"

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
# resources to what one pod needs of them, claims is how many resource claims
# (dynamic resource allocation) it makes.
pods := [pod |
	some role in roles
	pod := {
		"role": role.name,
		"replicas": role.replicas,
		"replicas_path": role.replicas_path,
		"pod_path": role.pod_path,
		"demand": pod_demand(role),
		"claims": count(list_or_empty(object.get(object_or_empty(role.pod), "resourceClaims", []))),
	}
]

# pod_demand is the larger of what runs at the same time: the containers with
# all sidecars, or an init container with the sidecars that started before it.
# Ephemeral containers cannot ask for anything.
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

# pods_total is the number of pods of all roles, most_replicas that of the
# largest, claims_total the number of claims of all pods.
pods_total := sum([role.replicas | some role in roles])

most_replicas := max(array.concat([0], [role.replicas | some role in roles]))

claims_total := sum([n |
	some pod in pods
	n := pod.claims * pod.replicas
])

# runs says how often and how long something runs to its end: path is where its
# bounds are, policy what is there. Only jobs have one.
runs := [{"path": "spec.runPolicy", "policy": object_or_empty(object.get(input.object, ["spec", "runPolicy"], {}))} |
	not input.object.kind in services
] if {
	startswith(input.object.apiVersion, "penstock.dev/")
} else := [{"path": concat(".", place.owner), "policy": object_or_empty(object.get(input.object, place.owner, {}))}] if {
	place := pod_places[input.object.kind]
	place.completions
} else := []

# services are the kinds of Penstock that run until they are deleted.
services := {"RayCluster"}

# runs_without selects runs that have no number of a name, runs_beyond those
# whose number is above the most.
runs_without(name) := [run |
	some run in runs
	not is_number(object.get(run.policy, name, null))
]

runs_beyond(name, most) := [run |
	some run in runs
	n := object.get(run.policy, name, null)
	is_number(n)
	n > most
]

# roles_having selects roles that hold something at a path, such as
# ["spec", "topology"]; roles_where those that hold one of some values there.
roles_having(path) := [role |
	some role in roles
	object.get(role, path, null) != null
]

roles_where(path, values) := [role |
	some role in roles
	object.get(role, path, null) in values
]

# containers_having selects containers that hold something at a path, such as
# ["resources", "claims"].
containers_having(path) := [container |
	some container in containers
	object.get(container.spec, path, null) != null
]

# containers_setting selects containers that set one of some environment
# variables.
containers_setting(names) := [container |
	some container in containers
	sets(container.spec, names)
]

sets(spec, names) if {
	some variable in list_or_empty(object.get(spec, "env", []))
	variable.name in names
}

# containers_saying selects containers with one of some words in a word of
# their command line.
containers_saying(words) := [container |
	some container in containers
	says(container.spec, words)
]

says(spec, words) if {
	some list in ["command", "args"]
	some text in list_or_empty(object.get(spec, list, []))
	some word in words
	contains(text, word)
}

# names_like and names_beyond select the names of resources that match patterns,
# and those that do not.
names_like(patterns) := {name |
	some name in resource_names
	matches_any(name, patterns)
}

names_beyond(patterns) := {name |
	some name in resource_names
	not matches_any(name, patterns)
}

# keys_like selects the keys of an object that match patterns.
keys_like(value, patterns) := {key |
	some key, _ in value
	matches_any(key, patterns)
}

# most_per_pod is how many devices with names that match patterns one pod needs
# at most, total_of how many all pods need together.
most_per_pod(patterns) := max(array.concat([0], [demand_for(pod, patterns) | some pod in pods]))

total_of(patterns) := sum([n |
	some pod in pods
	n := demand_for(pod, patterns) * pod.replicas
])

# wishes are what pods ask nodes for, each once however many roles ask it: name
# and needs of a device whose name matches patterns, and the selector of nodes.
wishes(patterns) := {{"name": name, "needs": needs, "selector": node_selector(roles[i].pod)} |
	some i, pod in pods
	some name, needs in pod.demand
	matches_any(name, patterns)
	needs > 0
}

node_selector(pod) := pod.nodeSelector if {
	is_object(pod.nodeSelector)
} else := {}

# met reports whether one of nodes, objects by name, offers what a wish needs and
# carries the labels that it selects.
default met(_, _) := false

met(wish, nodes) if {
	some node in nodes
	quantity(node.status.allocatable[wish.name]) >= wish.needs
	object.subset(object.get(node.metadata, "labels", {}), wish.selector)
}

# held reports whether one domain, the nodes with the same value of the label key,
# has so many devices whose names match patterns for pods that need each of them.
default held(_, _, _, _, _) := false

held(key, each, needed, patterns, nodes) if {
	some domain in domains(key, nodes)
	given(domain, key, patterns, each, nodes) >= needed
}

domains(key, nodes) := {domain |
	some node in nodes
	domain := node.metadata.labels[key]
}

# What is left over on a node helps nobody.
given(domain, key, patterns, each, nodes) := sum([n |
	some node in nodes
	node.metadata.labels[key] == domain
	n := floor(offered(node, patterns) / each) * each
])

offered(node, patterns) := sum([n |
	some name, amount in node.status.allocatable
	matches_any(name, patterns)
	n := quantity(amount)
])

# unsound_devices are the devices that are not asked for as a whole number that
# limit and request agree on.
unsound_devices := [device |
	some device in devices
	not sound(device)
]

# What is compared are amounts: the same number may be written in two ways.
sound(device) if {
	device.amounts.requests == device.amounts.limits
	whole(device.amounts.limits)
}

sound(device) if {
	not requested(device)
	whole(device.amounts.limits)
}

requested(device) if _ = device.written.requests

# Zero is whole: it is how what a template asks for is taken back.
whole(n) if {
	n >= 0
	floor(n) == n
}

# untolerated pairs each role that asks for tainted devices with the taint that
# its pods do not tolerate. taints are objects with resources (patterns of names
# of devices), key, effect and, where it is known, value.
untolerated(taints) := [{"role": role, "taint": taint} |
	some i, role in roles
	some taint in taints
	demand_for(pods[i], taint.resources) > 0
	not tolerates(role.pod, taint)
]

tolerates(pod, taint) if {
	some toleration in list_or_empty(object.get(pod, "tolerations", []))
	object.get(toleration, "key", "") in {"", taint.key}
	object.get(toleration, "effect", "") in {"", taint.effect}
	tolerates_value(toleration, taint)
}

# No key stands for every key, and only with Exists.
tolerates_value(toleration, _) if toleration.operator == "Exists"

tolerates_value(toleration, taint) if {
	object.get(toleration, "operator", "Equal") == "Equal"
	toleration.key == taint.key
	object.get(toleration, "value", "") == object.get(taint, "value", object.get(toleration, "value", ""))
}

# mispinned pairs each role that asks for devices with a node label that its
# pods insist on although the nodes that offer the devices do not carry it. rows
# are objects with resources (patterns of names of devices), labels (patterns of
# keys of labels) and, where only some are wrong, values.
mispinned(rows) := [{"role": role, "row": row, "pin": pin} |
	some i, role in roles
	some pin in pins(role.pod)
	some row in rows
	matches_any(pin.key, row.labels)
	every value in pin.values {
		value in object.get(row, "values", pin.values)
	}
	demand_for(pods[i], row.resources) > 0
]

# pins are the labels that nodes must carry for a pod to land there: key, the
# values that will do, and the field that says so. Terms of an affinity are
# alternatives; where there are several, none is a must.
pins(pod) := array.concat(
	[{"key": key, "values": [value], "field": sprintf("nodeSelector[%s]", [key])} | some key, value in object.get(object_or_empty(pod), "nodeSelector", {})],
	[{"key": expression.key, "values": values, "field": sprintf("%s[0].matchExpressions[%d]", [affinity_terms, i])} |
		terms := pod.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms
		is_array(terms)
		count(terms) == 1
		some i, expression in list_or_empty(terms[0].matchExpressions)
		values := pinned_values(expression)
	],
)

affinity_terms := "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"

# A label that must not be there is as good as false.
pinned_values(expression) := expression.values if {
	expression.operator == "In"
	is_array(expression.values)
} else := ["false"] if {
	expression.operator == "DoesNotExist"
}

# cramped selects containers that ask for as many devices as least, or more, and
# have no more shared memory than the 64 MiB that every container gets: nothing
# but a volume on disk is mounted at /dev/shm. With each comes its pod. What
# comes before the main containers, a test of the devices mostly, is left out.
cramped(patterns, least) := [{"path": path, "spec": spec, "pod": role.pod, "pod_path": role.pod_path} |
	some role in roles
	not role.pod.hostIPC == true
	some i, spec in list_or_empty(object.get(role.pod, "containers", []))
	is_object(spec)
	container_demand(spec, patterns) >= least
	not roomy(role.pod, spec)
	path := sprintf("%s.containers[%d]", [role.pod_path, i])
]

container_demand(spec, patterns) := sum([amount(spec, name) |
	some name in named({"spec": spec})
	matches_any(name, patterns)
])

roomy(pod, spec) if {
	some mount in list_or_empty(object.get(spec, "volumeMounts", []))
	mount.mountPath in {"/dev/shm", "/dev/shm/"}
	some volume in list_or_empty(object.get(pod, "volumes", []))
	volume.name == mount.name
	not on_disk(volume)
}

on_disk(volume) if {
	is_object(volume.emptyDir)
	object.get(volume.emptyDir, "medium", "") != "Memory"
}

number_or(value, _) := value if is_number(value)

number_or(value, fallback) := fallback if not is_number(value)

list_or_empty(value) := value if is_array(value)

list_or_empty(value) := [] if not is_array(value)

object_or_empty(value) := value if is_object(value)

object_or_empty(value) := {} if not is_object(value)
