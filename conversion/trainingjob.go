package conversion

import (
	"cmp"
	"slices"
	"strconv"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/api/v1alpha1"
)

// roleOrder is the order in which v1 lists roles that came from a map.
var roleOrder = []v1.RoleName{v1.RoleLauncher, v1.RoleChief, v1.RoleMaster, v1.RolePS, v1.RoleWorker, v1.RoleEvaluator}

func compareRoleNames(a, b v1.RoleName) int {
	place := func(name v1.RoleName) int {
		if i := slices.Index(roleOrder, name); i >= 0 {
			return i
		}
		return len(roleOrder)
	}
	return cmp.Or(place(a)-place(b), cmp.Compare(a, b))
}

// TrainingJobSpecToHub sets dst, which is empty but for room in its list of
// roles, to the normal form of src. The two share what they point to. What v1 cannot say of src is left out: Convert
// is what keeps it.
func TrainingJobSpecToHub(src *v1alpha1.TrainingJobSpec, dst *v1.TrainingJobSpec) {
	room := dst.Roles
	dst.Roles = nil
	for _, m := range replicaMaps {
		if specs := *m.of(src); specs != nil {
			dst.Framework = m.framework
			dst.Roles = rolesToHub(specs, room)
			break
		}
	}
	if policy := src.RunPolicy; policy != nil {
		dst.RunPolicy = runPolicyToHub(policy)
		dst.Gang = gangToHub(policy.SchedulingPolicy)
	}
	if src.CleanPodPolicy != nil && (dst.RunPolicy == nil || dst.RunPolicy.CleanPodPolicy == "") {
		if dst.RunPolicy == nil {
			dst.RunPolicy = &v1.RunPolicy{}
		}
		dst.RunPolicy.CleanPodPolicy = v1.CleanPodPolicy(*src.CleanPodPolicy)
	}
	elasticToHub(src, dst)
	tensorFlowToHub(src, dst)
	mpiToHub(src, dst)
}

func rolesToHub(specs v1alpha1.ReplicaSpecs, room []v1.Role) []v1.Role {
	roles := withRoom(room, len(specs))
	for name, spec := range specs {
		role := grown(&roles)
		role.Name = v1.RoleName(name)
		if spec != nil {
			role.Replicas = spec.Replicas
			role.RestartPolicy = v1.RestartPolicy(spec.RestartPolicy)
			role.Template = spec.Template
		}
	}
	slices.SortFunc(roles, func(a, b v1.Role) int { return compareRoleNames(a.Name, b.Name) })
	return roles
}

func runPolicyToHub(src *v1alpha1.RunPolicy) *v1.RunPolicy {
	dst := &v1.RunPolicy{
		Suspend:                 src.Suspend,
		ActiveDeadlineSeconds:   src.ActiveDeadlineSeconds,
		BackoffLimit:            src.BackoffLimit,
		TTLSecondsAfterFinished: src.TTLSecondsAfterFinished,
		ManagedBy:               src.ManagedBy,
	}
	if src.CleanPodPolicy != nil {
		dst.CleanPodPolicy = v1.CleanPodPolicy(*src.CleanPodPolicy)
	}
	return dst
}

func gangToHub(src *v1alpha1.SchedulingPolicy) *v1.Gang {
	if src == nil {
		return nil
	}
	return &v1.Gang{
		MinAvailable:           src.MinAvailable,
		QueueName:              src.Queue,
		PriorityClassName:      src.PriorityClass,
		MinResources:           src.MinResources,
		ScheduleTimeoutSeconds: src.ScheduleTimeoutSeconds,
	}
}

// elasticToHub splits upstream's elasticPolicy into what holds for any
// framework and what only PyTorch knows.
func elasticToHub(src *v1alpha1.TrainingJobSpec, dst *v1.TrainingJobSpec) {
	pytorch := v1.PyTorch{ProcessesPerNode: src.NprocPerNode}
	if policy := src.ElasticPolicy; policy != nil {
		dst.Elastic = &v1.Elastic{
			MinReplicas: policy.MinReplicas,
			MaxReplicas: policy.MaxReplicas,
			Metrics:     policy.Metrics,
		}
		for _, role := range dst.Roles {
			if role.Name == v1.RoleWorker {
				dst.Elastic.Replicas = role.Replicas
			}
		}
		if policy.NProcPerNode != nil && pytorch.ProcessesPerNode == nil {
			processes := strconv.Itoa(int(*policy.NProcPerNode))
			pytorch.ProcessesPerNode = &processes
		}
		pytorch.MaxRestarts = policy.MaxRestarts
		pytorch.Rendezvous = rendezvousToHub(policy)
	}
	if pytorch != (v1.PyTorch{}) {
		dst.PyTorch = &pytorch
	}
}

func rendezvousToHub(src *v1alpha1.ElasticPolicy) *v1.Rendezvous {
	if src.RDZVBackend == nil && src.RDZVHost == nil && src.RDZVPort == nil && src.RDZVID == nil &&
		src.RDZVConf == nil && src.Standalone == nil {
		return nil
	}
	dst := &v1.Rendezvous{Host: src.RDZVHost, Port: src.RDZVPort, ID: src.RDZVID}
	if src.RDZVBackend != nil {
		dst.Backend = v1.RendezvousBackend(*src.RDZVBackend)
	}
	if src.Standalone != nil {
		dst.Mode = v1.RendezvousShared
		if *src.Standalone {
			dst.Mode = v1.RendezvousStandalone
		}
	}
	if src.RDZVConf != nil {
		dst.Options = make([]v1.RendezvousOption, len(src.RDZVConf))
		for i, conf := range src.RDZVConf {
			dst.Options[i].Key = conf.Key
			if conf.Value != "" {
				dst.Options[i].Value = &conf.Value
			}
		}
	}
	return dst
}

func tensorFlowToHub(src *v1alpha1.TrainingJobSpec, dst *v1.TrainingJobSpec) {
	if src.SuccessPolicy == nil && src.EnableDynamicWorker == nil {
		return
	}
	dst.TensorFlow = &v1.TensorFlow{}
	if src.SuccessPolicy != nil {
		dst.TensorFlow.SuccessPolicy = v1.SuccessPolicy(*src.SuccessPolicy)
		if *src.SuccessPolicy == "" {
			dst.TensorFlow.SuccessPolicy = v1.SuccessWorker0
		}
	}
	if src.EnableDynamicWorker != nil {
		dst.TensorFlow.Workers = v1.WorkersStatic
		if *src.EnableDynamicWorker {
			dst.TensorFlow.Workers = v1.WorkersDynamic
		}
	}
}

func mpiToHub(src *v1alpha1.TrainingJobSpec, dst *v1.TrainingJobSpec) {
	mpi := v1.MPI{
		SlotsPerWorker:   src.SlotsPerWorker,
		Implementation:   v1.MPIImplementation(src.MPIImplementation),
		SSHAuthMountPath: src.SSHAuthMountPath,
		LauncherCreation: v1.LauncherCreation(src.LauncherCreationPolicy),
		MainContainer:    src.MainContainer,
	}
	if src.RunLauncherAsWorker != nil {
		mpi.Launcher = v1.LauncherOnly
		if *src.RunLauncherAsWorker {
			mpi.Launcher = v1.LauncherAsWorker
		}
	}
	if mpi != (v1.MPI{}) {
		dst.MPI = &mpi
	}
}

// TrainingJobSpecFromHub sets dst, which is empty, to the upstream shape of
// src. The two share what they point to. What v1alpha1 cannot say of src is
// left out: Convert is what keeps it.
func TrainingJobSpecFromHub(src *v1.TrainingJobSpec, dst *v1alpha1.TrainingJobSpec) {
	if src.Roles != nil {
		*replicaMapOf(src.Framework).of(dst) = rolesFromHub(src)
	}
	if policy := src.RunPolicy; policy != nil {
		dst.RunPolicy = runPolicyFromHub(policy)
	}
	if src.Gang != nil {
		if dst.RunPolicy == nil {
			dst.RunPolicy = &v1alpha1.RunPolicy{}
		}
		dst.RunPolicy.SchedulingPolicy = gangFromHub(src.Gang)
	}
	elasticFromHub(src, dst)
	tensorFlowFromHub(src.TensorFlow, dst)
	mpiFromHub(src.MPI, dst)
}

func replicaMapOf(framework v1.Framework) frameworkMap {
	for _, m := range replicaMaps {
		if m.framework == framework {
			return m
		}
	}
	return replicaMaps[0]
}

func rolesFromHub(src *v1.TrainingJobSpec) v1alpha1.ReplicaSpecs {
	specs := make(v1alpha1.ReplicaSpecs, len(src.Roles))
	for _, role := range src.Roles {
		spec := &v1alpha1.ReplicaSpec{
			Replicas:      role.Replicas,
			RestartPolicy: string(role.RestartPolicy),
			Template:      role.Template,
		}
		if role.Name == v1.RoleWorker && src.Elastic != nil && src.Elastic.Replicas != nil {
			spec.Replicas = src.Elastic.Replicas
		}
		specs[string(role.Name)] = spec
	}
	return specs
}

func runPolicyFromHub(src *v1.RunPolicy) *v1alpha1.RunPolicy {
	return &v1alpha1.RunPolicy{
		Suspend:                 src.Suspend,
		ActiveDeadlineSeconds:   src.ActiveDeadlineSeconds,
		BackoffLimit:            src.BackoffLimit,
		TTLSecondsAfterFinished: src.TTLSecondsAfterFinished,
		CleanPodPolicy:          stringOrNil(src.CleanPodPolicy),
		ManagedBy:               src.ManagedBy,
	}
}

func gangFromHub(src *v1.Gang) *v1alpha1.SchedulingPolicy {
	return &v1alpha1.SchedulingPolicy{
		MinAvailable:           src.MinAvailable,
		Queue:                  src.QueueName,
		PriorityClass:          src.PriorityClassName,
		MinResources:           src.MinResources,
		ScheduleTimeoutSeconds: src.ScheduleTimeoutSeconds,
	}
}

func elasticFromHub(src *v1.TrainingJobSpec, dst *v1alpha1.TrainingJobSpec) {
	var policy v1alpha1.ElasticPolicy
	needed := false
	if src.Elastic != nil {
		needed = true
		policy.MinReplicas = src.Elastic.MinReplicas
		policy.MaxReplicas = src.Elastic.MaxReplicas
		policy.Metrics = src.Elastic.Metrics
	}
	if src.PyTorch != nil {
		dst.NprocPerNode = src.PyTorch.ProcessesPerNode
		policy.MaxRestarts = src.PyTorch.MaxRestarts
		needed = needed || policy.MaxRestarts != nil
		if rendezvous := src.PyTorch.Rendezvous; rendezvous != nil {
			needed = true
			rendezvousFromHub(rendezvous, &policy)
		}
	}
	if needed {
		dst.ElasticPolicy = &policy
	}
}

func rendezvousFromHub(src *v1.Rendezvous, dst *v1alpha1.ElasticPolicy) {
	dst.RDZVBackend = stringOrNil(src.Backend)
	dst.RDZVHost, dst.RDZVPort, dst.RDZVID = src.Host, src.Port, src.ID
	if src.Mode != "" {
		standalone := src.Mode == v1.RendezvousStandalone
		dst.Standalone = &standalone
	}
	if src.Options != nil {
		dst.RDZVConf = make([]v1alpha1.RDZVConf, len(src.Options))
		for i, option := range src.Options {
			dst.RDZVConf[i].Key = option.Key
			if option.Value != nil {
				dst.RDZVConf[i].Value = *option.Value
			}
		}
	}
}

func tensorFlowFromHub(src *v1.TensorFlow, dst *v1alpha1.TrainingJobSpec) {
	if src == nil {
		return
	}
	if src.SuccessPolicy != "" {
		policy := string(src.SuccessPolicy)
		if src.SuccessPolicy == v1.SuccessWorker0 {
			policy = ""
		}
		dst.SuccessPolicy = &policy
	}
	if src.Workers != "" {
		dynamic := src.Workers == v1.WorkersDynamic
		dst.EnableDynamicWorker = &dynamic
	}
}

func mpiFromHub(src *v1.MPI, dst *v1alpha1.TrainingJobSpec) {
	if src == nil {
		return
	}
	dst.SlotsPerWorker = src.SlotsPerWorker
	dst.MPIImplementation = string(src.Implementation)
	dst.SSHAuthMountPath = src.SSHAuthMountPath
	dst.LauncherCreationPolicy = string(src.LauncherCreation)
	dst.MainContainer = src.MainContainer
	if src.Launcher != "" {
		asWorker := src.Launcher == v1.LauncherAsWorker
		dst.RunLauncherAsWorker = &asWorker
	}
}

// stringOrNil gives a pointer to a copy of the value, or nil for the empty one.
func stringOrNil[S ~string](value S) *string {
	if value == "" {
		return nil
	}
	text := string(value)
	return &text
}
