package validation

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// adviseManager finds names that look like Penstock's own and are not.
func adviseManager(name string, path *field.Path) field.ErrorList {
	if !strings.HasPrefix(name, v1.GroupName+"/") || name == v1.ManagedByPenstock {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf(
		"names %s, and Penstock calls itself %s, so it leaves this to somebody else: nobody will run it; make it without managedBy",
		name, v1.ManagedByPenstock))}
}

// adviseTemplateMeta finds metadata of a template that pods do not get.
func adviseTemplateMeta(meta *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	var advice field.ErrorList
	const remove = ", and this is dropped: remove it"
	add := func(set bool, name, why string) {
		if set {
			advice = append(advice, field.Forbidden(path.Child(name), why+remove))
		}
	}
	add(meta.Name != "", "name", "pods are named after their role and index")
	add(meta.GenerateName != "", "generateName", "pods are named after their role and index")
	add(meta.Namespace != "", "namespace", "pods are made in the namespace of what they belong to")
	add(len(meta.Finalizers) > 0, "finalizers", "of a template's metadata pods get labels and annotations only")
	add(len(meta.OwnerReferences) > 0, "ownerReferences", "pods belong to what they are made for")
	return advice
}

// advisePorts finds ports that two containers of a pod declare. Kubernetes takes
// them for information; the pod's network has each of them once.
func advisePorts(containers []corev1.Container, path *field.Path) field.ErrorList {
	var advice field.ErrorList
	first := map[portKey]int{}
	for i := range containers {
		for j, port := range containers[i].Ports {
			owner, taken := first[keyOf(port)]
			switch {
			case !taken:
				first[keyOf(port)] = i
			case owner != i:
				advice = append(advice, field.Forbidden(path.Index(i).Child("ports").Index(j).Child("containerPort"), fmt.Sprintf(
					"is %d, a port of container %s too: containers of a pod share its network, and only one of them can listen there", port.ContainerPort, containers[owner].Name)))
			}
		}
	}
	return advice
}

// adviseRestart finds a gang of which no failure restarts anything.
func adviseRestart(spec *v1.TrainingJobSpec, path *field.Path) field.ErrorList {
	if restartScope(spec) != v1.RestartGang || len(spec.Roles) == 0 {
		return nil
	}
	for i := range spec.Roles {
		if spec.Roles[i].RestartPolicy != v1.RestartNever {
			return nil
		}
	}
	return field.ErrorList{field.Forbidden(path.Child("runPolicy", "restart"),
		"is Gang, and restartPolicy is Never for every role, so the first pod that fails ends the job, and only one that is lost restarts all: "+
			"write restartPolicy ExitCode or OnFailure to have failures restart them")}
}

// adviseWorkers finds a number of workers that is written where it does not
// count: of an elastic job elastic.replicas does. It compares what is written
// now with what was, and not what counts, as scaling and applying the manifest
// again are no news. The lower bound is what the role gets by default, so it
// may be that nobody has written it.
func adviseWorkers(old, spec *v1.TrainingJobSpec, path *field.Path) field.ErrorList {
	elastic := spec.Elastic
	if elastic == nil || elastic.Replicas == nil {
		return nil
	}
	var advice field.ErrorList
	for i := range spec.Roles {
		role := &spec.Roles[i]
		if role.Name != v1.RoleWorker || role.Replicas == nil || *role.Replicas == *elastic.Replicas ||
			ptr.Equal(role.Replicas, elastic.MinReplicas) || (old != nil && old.Elastic != nil && hadReplicas(old, role)) {
			continue
		}
		advice = append(advice, field.Forbidden(path.Child("roles").Index(i).Child("replicas"), fmt.Sprintf(
			"is %d and has no effect: the number of workers of an elastic job is spec.elastic.replicas, which is %d; change that, and remove this",
			*role.Replicas, *elastic.Replicas)))
	}
	return advice
}

func hadReplicas(old *v1.TrainingJobSpec, role *v1.Role) bool {
	for _, was := range rolesNamed(old, role.Name) {
		if ptr.Equal(was.Replicas, role.Replicas) {
			return true
		}
	}
	return false
}
