package v1

// Labels that Penstock puts on every child it makes.
const (
	// ManagedByLabel is the well-known label that names who manages a child;
	// its value is ManagedByValue. Caches select children by it.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedByValue is the value of ManagedByLabel on every child.
	ManagedByValue = "penstock"
	// JobNameLabel holds the name of the TrainingJob that a child belongs to.
	JobNameLabel = "penstock.dev/job-name"
	// ClusterNameLabel holds the name of the RayCluster that a child belongs to.
	ClusterNameLabel = "penstock.dev/cluster-name"
	// RoleLabel holds the role of a pod, in lower case.
	RoleLabel = "penstock.dev/role"
	// IndexLabel holds the index of a pod within its role, from 0.
	IndexLabel = "penstock.dev/index"
	// AttemptLabel holds which attempt a pod is of, from 0, where the pods of a
	// workload are restarted all together.
	AttemptLabel = "penstock.dev/attempt"
	// ReplicaLabel holds the index of the replica that a pod is of, from 0, where
	// a replica is a unit of several pods.
	ReplicaLabel = "penstock.dev/replica"
	// HostLabel holds the index of a pod within its replica, from 0.
	HostLabel = "penstock.dev/host"
	// TemplateHashLabel holds a hash of what a pod's author wrote of it, by which
	// pods of an older template are told apart.
	TemplateHashLabel = "penstock.dev/template-hash"
)

// Annotations that Penstock reads or writes.
const (
	// RestoreAnnotation keeps what the version an object is read in cannot
	// say, so that converting back loses nothing. It is written by conversion
	// alone; what others write into it counts only where it could have come
	// from conversion.
	RestoreAnnotation = "penstock.dev/restore"
)

// RedisCleanupFinalizer keeps a RayCluster from going before what it has in
// Redis is removed.
const RedisCleanupFinalizer = "penstock.dev/redis-cleanup"

// ProbeLabel marks the object that a probe of the webhook configuration
// pretends to create; its value says of which.
const ProbeLabel = "penstock.dev/probe"

// ManagerRoleLabel marks, where it is "true", the ClusterRoles that grant Penstock
// what it may not do by default.
const ManagerRoleLabel = "penstock.dev/aggregate-to-manager"

// FieldManager is the one name under which Penstock applies its children.
const FieldManager = "penstock"

// ManagedByPenstock is the value of spec.runPolicy.managedBy that names
// Penstock itself; absence means the same.
const ManagedByPenstock = "penstock.dev/manager"
