package ray

import (
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// How the state of a cluster in Redis is used, and removed in the end.

const (
	// faultToleranceAnnotation is KubeRay's older way to say that the state is in
	// Redis, where the head's template says how it is reached.
	faultToleranceAnnotation  = "ray.io/ft-enabled"
	storageAnnotation         = "ray.io/external-storage-namespace"
	deletionTimeoutAnnotation = "ray.io/gcs-ft-deletion-timeout"

	storageVariable       = "RAY_external_storage_namespace"
	redisAddressVariable  = "RAY_REDIS_ADDRESS"
	redisUsernameVariable = "REDIS_USERNAME"
	redisPasswordVariable = "REDIS_PASSWORD"

	// cleanupTimeout is how long the state may take to be removed. After that the
	// cluster goes all the same: a job that a quota refuses, or that waits for a
	// server that is gone, must not keep it for ever.
	cleanupTimeout = 300 * time.Second
)

// usesRedis says whether the cluster has state in Redis, which its deletion has
// to remove.
func usesRedis(cluster *v1.RayCluster) bool {
	if options := cluster.Spec.GCSFaultTolerance; options != nil {
		return options.Backend == "" || options.Backend == v1.GCSBackendRedis
	}
	return toleratesFaults(cluster)
}

// redisVariables tell the head where its state is.
func redisVariables(cluster *v1.RayCluster, role *v1.RayRole, env *pods.Environment) {
	env.Set(storageVariable, storageNamespace(cluster))
	options := cluster.Spec.GCSFaultTolerance
	if options == nil {
		if password := rayStartParams(role)["redis-password"]; password != "" && !strings.HasPrefix(password, "$") {
			env.Set(redisPasswordVariable, password)
		}
		return
	}
	if options.RedisAddress != nil {
		env.Set(redisAddressVariable, *options.RedisAddress)
	}
	setCredential(env, redisUsernameVariable, options.RedisUsername)
	setCredential(env, redisPasswordVariable, options.RedisPassword)
}

func setCredential(env *pods.Environment, name string, credential *v1.Credential) {
	switch {
	case credential == nil:
	case credential.ValueFrom != nil:
		*env = append(*env, corev1.EnvVar{Name: name, ValueFrom: credential.ValueFrom.DeepCopy()})
	case credential.Value != nil:
		env.Set(name, *credential.Value)
	}
}

// storageNamespace tells the state of one cluster from that of others.
func storageNamespace(cluster *v1.RayCluster) string {
	if options := cluster.Spec.GCSFaultTolerance; options != nil && options.ExternalStorageNamespace != nil {
		return *options.ExternalStorageNamespace
	}
	if given := cluster.Annotations[storageAnnotation]; given != "" {
		return given
	}
	return string(cluster.UID)
}

// planDeletion removes the pods of a cluster that is being deleted, and then,
// when no head can write to it any more, its state.
func (p *planner) planDeletion() {
	end := p.cluster.DeletionTimestamp.Add(deletionTimeout(p.cluster))
	if !usesRedis(p.cluster) || len(headOf(p.cluster).Template.Spec.Containers) == 0 || !p.now.Time.Before(end) {
		return
	}
	job := p.cleanupJob()
	if job != nil && hasFinished(job) {
		return
	}
	p.result.Finalize = true
	p.wakeAt(end)
	p.removePods("the cluster is being deleted")
	// While the deletion is in the foreground, the garbage collector would delete
	// the job as all else that is the cluster's.
	inForeground := slices.Contains(p.cluster.Finalizers, metav1.FinalizerDeleteDependents)
	if job == nil && p.census.head.members[0] == nil && !inForeground {
		p.result.Create = append(p.result.Create, plan.Object(p.newCleanupJob()))
	}
}

func deletionTimeout(cluster *v1.RayCluster) time.Duration {
	seconds, err := strconv.ParseInt(cluster.Annotations[deletionTimeoutAnnotation], 10, 32)
	if err != nil || seconds <= 0 {
		return cleanupTimeout
	}
	return time.Duration(seconds) * time.Second
}

func cleanupName(cluster *v1.RayCluster) string { return fitted(cluster, "-redis-cleanup") }

func (p *planner) cleanupJob() *batchv1.Job {
	for _, job := range plan.ChildrenOf[*batchv1.Job](p.observed) {
		if job.Name == cleanupName(p.cluster) {
			return job
		}
	}
	return nil
}

// hasFinished says whether a job has come to its end, well or not: nothing would
// try again.
func hasFinished(job *batchv1.Job) bool {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// cleanupScript calls what Ray has for this, and fails if it could not do it.
const cleanupScript = `import os, sys
from urllib.parse import urlsplit
from ray._private.gcs_utils import cleanup_redis_storage
address = os.environ["RAY_REDIS_ADDRESS"].split(",")[0]
url = urlsplit(address if "://" in address else "redis://" + address)
done = cleanup_redis_storage(
    host=url.hostname, port=url.port or 6379,
    username=os.environ.get("REDIS_USERNAME", url.username or ""),
    password=os.environ.get("REDIS_PASSWORD", url.password or ""),
    use_ssl=url.scheme == "rediss",
    storage_namespace=os.environ["RAY_external_storage_namespace"])
sys.exit(0 if done else 1)
`

// newCleanupJob returns the job that removes the state, in the image of the
// head. It carries no labels of the head's template: a queue that they name
// would hold it back.
func (p *planner) newCleanupJob() *batchv1.Job {
	role := headOf(p.cluster)
	head := p.newPod(role, cleanupName(p.cluster))
	container := head.Spec.Containers[0]
	headEnvironment(p.cluster, role).into(&container)
	// Of Ray's own variables none is right here: no node is started.
	container.Env = withoutFieldRefs(container.Env)
	container.Name, container.Ports = cleanupNodeType, nil
	container.LivenessProbe, container.ReadinessProbe, container.StartupProbe, container.Lifecycle = nil, nil, nil, nil
	container.Command, container.Args = []string{"python", "-c", cleanupScript}, nil
	amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: resource.MustParse("256Mi")}
	container.Resources = corev1.ResourceRequirements{Limits: amounts, Requests: amounts.DeepCopy()}
	head.Spec.Containers, head.Spec.InitContainers = []corev1.Container{container}, nil
	head.Spec.RestartPolicy, head.Spec.ResourceClaims = corev1.RestartPolicyNever, nil
	labels := clusterLabels(p.cluster)
	labels[rayNodeTypeLabel] = cleanupNodeType
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: cleanupName(p.cluster), Namespace: p.cluster.Namespace, Labels: labels},
		Spec: batchv1.JobSpec{
			BackoffLimit:          new(int32(0)),
			ActiveDeadlineSeconds: new(int64(cleanupTimeout / time.Second)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{rayNodeTypeLabel: cleanupNodeType, rayClusterLabel: p.cluster.Name}},
				Spec:       head.Spec,
			},
		},
	}
}

func withoutFieldRefs(env []corev1.EnvVar) []corev1.EnvVar {
	kept := make([]corev1.EnvVar, 0, len(env))
	for _, v := range env {
		if v.ValueFrom == nil || v.ValueFrom.FieldRef == nil {
			kept = append(kept, v)
		}
	}
	return kept
}
