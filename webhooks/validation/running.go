package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

const (
	whileRunning = "while the job is not suspended: suspend it first by runPolicy.suspend, or make a new job"
	onceFinished = "any more, as the job has finished: make a new job"
)

// A keeper collects what has changed though it must not, and says until when.
type keeper struct {
	until string
	errs  field.ErrorList
}

func (k *keeper) keep(path *field.Path, before, after any) {
	if !equality.Semantic.DeepEqual(before, after) {
		k.forbid(path, "cannot change")
	}
}

func (k *keeper) forbid(path *field.Path, predicate string) {
	k.errs = append(k.errs, field.Forbidden(path, predicate+" "+k.until))
}

// validatePodsUpdate keeps what pods are made of. The pods of a running job are
// of the old spec, and only pods that are made later would be of the new one:
// the job would be of two kinds of pods. A queue writes into a suspended job as
// it releases it. Of a finished job the spec tells what has run, and suspending
// it would free nothing.
func validatePodsUpdate(old *v1.TrainingJob, spec *v1.TrainingJobSpec, path *field.Path) field.ErrorList {
	k := &keeper{until: whileRunning}
	switch {
	case isFinished(old):
		k.until = onceFinished
	case isSuspended(&old.Spec) || isSuspended(spec) || isInvalid(old):
		return nil
	}
	k.keepRestart(&old.Spec, spec, path)
	k.keepGang(&old.Spec, spec, path.Child("gang"))
	k.keepRoles(&old.Spec, spec, path.Child("roles"))
	k.keepElastic(&old.Spec, spec, path)
	k.keepPyTorch(&old.Spec, spec, path.Child("pytorch"))
	k.keepTensorFlow(&old.Spec, spec, path.Child("tensorflow"))
	k.keepMPI(&old.Spec, spec, path.Child("mpi"))
	return k.errs
}

func isFinished(job *v1.TrainingJob) bool {
	return job.Status.Phase == v1.PhaseSucceeded || job.Status.Phase == v1.PhaseFailed
}

// isInvalid says whether nothing is made of a job, since it was stored although
// its spec is invalid: whoever mends it has to change it.
func isInvalid(job *v1.TrainingJob) bool {
	condition := meta.FindStatusCondition(job.Status.Conditions, v1.InvalidCondition)
	return condition != nil && condition.Status == metav1.ConditionTrue && condition.Reason == v1.InvalidSpecReason
}

func (k *keeper) keepRoles(old, spec *v1.TrainingJobSpec, path *field.Path) {
	for i := range spec.Roles {
		role := &spec.Roles[i]
		// A role that stands twice is a fault of its own, and may be stored.
		before := rolesNamed(old, role.Name)
		if len(before) == 0 {
			k.forbid(path.Index(i), fmt.Sprintf("role %s cannot be added", role.Name))
			continue
		}
		k.keepRole(path.Index(i).Child("restartPolicy"), before, role, func(r *v1.Role) any { return r.RestartPolicy })
		k.keepRole(path.Index(i).Child("topology"), before, role, func(r *v1.Role) any { return r.Topology })
		k.keepRole(path.Index(i).Child("template"), before, role, func(r *v1.Role) any { return r.Template })
		if !follows(old, spec, role.Name) {
			k.keepRole(path.Index(i).Child("replicas"), before, role, func(r *v1.Role) any { return ptr.Deref(r.Replicas, 1) })
		}
	}
	for i := range old.Roles {
		if len(rolesNamed(spec, old.Roles[i].Name)) == 0 {
			k.forbid(path, fmt.Sprintf("role %s cannot be removed", old.Roles[i].Name))
		}
	}
}

// keepRole compares one thing of a role with what it was in any of that name.
func (k *keeper) keepRole(path *field.Path, before []*v1.Role, role *v1.Role, of func(*v1.Role) any) {
	for _, was := range before {
		if equality.Semantic.DeepEqual(of(was), of(role)) {
			return
		}
	}
	k.forbid(path, "cannot change")
}

func rolesNamed(spec *v1.TrainingJobSpec, name v1.RoleName) []*v1.Role {
	var roles []*v1.Role
	for i := range spec.Roles {
		if spec.Roles[i].Name == name {
			roles = append(roles, &spec.Roles[i])
		}
	}
	return roles
}

// follows says whether a role's replicas can change while its pods run: the
// elastic block says how many there are, or no pod is told of them. An MPI
// launcher reads its hosts from a file that is kept up to date, as Horovod
// needs, and TensorFlow tells nobody of workers that come and go.
func follows(old, spec *v1.TrainingJobSpec, name v1.RoleName) bool {
	if name != v1.RoleWorker {
		return false
	}
	return old.Elastic != nil && spec.Elastic != nil || spec.Framework == v1.FrameworkMPI ||
		isDynamic(old) && isDynamic(spec)
}

func isDynamic(spec *v1.TrainingJobSpec) bool {
	return spec.Framework == v1.FrameworkTensorFlow && spec.TensorFlow != nil && spec.TensorFlow.Workers == v1.WorkersDynamic
}

// keepElastic lets the count change, which is what elastic is for, and what
// only the autoscaler reads. PyTorch's pods are told the bounds (PET_NNODES).
func (k *keeper) keepElastic(old, spec *v1.TrainingJobSpec, path *field.Path) {
	path = path.Child("elastic")
	before, after := old.Elastic, spec.Elastic
	switch {
	case before == nil && after == nil:
	case before == nil:
		k.forbid(path, "cannot be added")
	case after == nil:
		k.forbid(path, "cannot be removed")
	case spec.Framework == v1.FrameworkPyTorch:
		k.keep(path.Child("minReplicas"), before.MinReplicas, after.MinReplicas)
		k.keep(path.Child("maxReplicas"), before.MaxReplicas, after.MaxReplicas)
	}
}

func (k *keeper) keepPyTorch(old, spec *v1.TrainingJobSpec, path *field.Path) {
	before, after := ptr.Deref(old.PyTorch, v1.PyTorch{}), ptr.Deref(spec.PyTorch, v1.PyTorch{})
	k.keep(path.Child("processesPerNode"), ptr.Deref(before.ProcessesPerNode, "auto"), ptr.Deref(after.ProcessesPerNode, "auto"))
	if (old.Elastic == nil) != (spec.Elastic == nil) {
		// v1alpha1 says the rest in the elastic block, which is refused as such.
		return
	}
	k.keep(path.Child("maxRestarts"), before.MaxRestarts, after.MaxRestarts)
	path = path.Child("rendezvous")
	if spec.Elastic == nil && (before.Rendezvous == nil) != (after.Rendezvous == nil) {
		k.forbid(path, "cannot change")
		return
	}
	was, is := rendezvousOf(before), rendezvousOf(after)
	k.keep(path.Child("backend"), was.Backend, is.Backend)
	k.keep(path.Child("host"), was.Host, is.Host)
	k.keep(path.Child("port"), was.Port, is.Port)
	k.keep(path.Child("id"), was.ID, is.ID)
	k.keep(path.Child("options"), was.Options, is.Options)
	k.keep(path.Child("mode"), was.Mode, is.Mode)
}

// rendezvousOf takes what is left out for what it means.
func rendezvousOf(pytorch v1.PyTorch) v1.Rendezvous {
	rendezvous := ptr.Deref(pytorch.Rendezvous, v1.Rendezvous{})
	if rendezvous.Backend == "" {
		rendezvous.Backend = v1.RendezvousC10d
	}
	if rendezvous.Mode == "" {
		rendezvous.Mode = v1.RendezvousShared
	}
	return rendezvous
}

// keepTensorFlow lets the success policy change, of which no pod is told.
func (k *keeper) keepTensorFlow(old, spec *v1.TrainingJobSpec, path *field.Path) {
	if spec.Framework == v1.FrameworkTensorFlow {
		k.keep(path.Child("workers"), isDynamic(old), isDynamic(spec))
	}
}

// keepMPI lets change when the launcher comes, as one that waits for a worker
// in vain can then be had at once.
func (k *keeper) keepMPI(old, spec *v1.TrainingJobSpec, path *field.Path) {
	before, after := ptr.Deref(old.MPI, v1.MPI{}), ptr.Deref(spec.MPI, v1.MPI{})
	k.keep(path.Child("slotsPerWorker"), ptr.Deref(before.SlotsPerWorker, 1), ptr.Deref(after.SlotsPerWorker, 1))
	k.keep(path.Child("implementation"), before.Implementation, after.Implementation)
	k.keep(path.Child("sshAuthMountPath"), before.SSHAuthMountPath, after.SSHAuthMountPath)
	k.keep(path.Child("launcher"), before.Launcher, after.Launcher)
	k.keep(path.Child("mainContainer"), before.MainContainer, after.MainContainer)
	k.keep(path.Child("transport"), before.Transport, after.Transport)
	k.keep(path.Child("kubectlImage"), before.KubectlImage, after.KubectlImage)
}
