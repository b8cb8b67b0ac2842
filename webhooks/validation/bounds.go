package validation

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// validateFramework judges the framework and the blocks that belong to one.
// The words on foreign blocks equal those of the CEL rules in the schema.
func validateFramework(spec *v1.TrainingJobSpec, path *field.Path) field.ErrorList {
	if !spec.Framework.Known() {
		return field.ErrorList{field.NotSupported(path.Child("framework"), spec.Framework, []v1.Framework{
			v1.FrameworkPyTorch, v1.FrameworkTensorFlow, v1.FrameworkMPI,
			v1.FrameworkPaddlePaddle, v1.FrameworkXGBoost, v1.FrameworkJAX,
		})}
	}
	var errs field.ErrorList
	for _, block := range []struct {
		name      string
		set       bool
		framework v1.Framework
	}{
		{"pytorch", spec.PyTorch != nil, v1.FrameworkPyTorch},
		{"tensorflow", spec.TensorFlow != nil, v1.FrameworkTensorFlow},
		{"mpi", spec.MPI != nil, v1.FrameworkMPI},
	} {
		if block.set && spec.Framework != block.framework {
			errs = append(errs, field.Forbidden(path.Child(block.name), fmt.Sprintf(
				"%s is only for framework %s: remove it or change framework", block.name, block.framework)))
		}
	}
	if spec.PyTorch != nil {
		errs = append(errs, validateProcesses(spec.PyTorch.ProcessesPerNode, path.Child("pytorch", "processesPerNode"))...)
		errs = append(errs, validateRendezvous(spec, path.Child("pytorch", "rendezvous"))...)
	}
	return append(errs, validateMPI(spec, path)...)
}

// validateProcesses accepts what torchrun accepts for --nproc-per-node. The
// schema's pattern lets ten digits pass; the world size is an int32.
func validateProcesses(processes *string, path *field.Path) field.ErrorList {
	if processes == nil {
		return nil
	}
	switch *processes {
	case "auto", "cpu", "gpu":
		return nil
	}
	if count, err := strconv.ParseInt(*processes, 10, 64); err != nil || count < 1 || count > math.MaxInt32 {
		return field.ErrorList{field.Invalid(path, *processes,
			"must be a number from 1, or one of auto, cpu and gpu: give the number of processes in each pod")}
	}
	return nil
}

func validateRunPolicy(policy *v1.RunPolicy, path *field.Path) field.ErrorList {
	if policy == nil {
		return nil
	}
	return validateManagedBy(policy.ManagedBy, path.Child("managedBy"))
}

// validateManagedBy asks for the form that batch/v1 Jobs ask for.
func validateManagedBy(name *string, path *field.Path) field.ErrorList {
	if name == nil {
		return nil
	}
	if errs := validation.IsDomainPrefixedPath(path, *name); len(errs) > 0 {
		return field.ErrorList{field.Invalid(path, *name, fmt.Sprintf(
			"must be a domain-prefixed path such as %s: name the controller so, or remove the field", v1.ManagedByPenstock))}
	}
	return nil
}

func validateGang(spec *v1.TrainingJobSpec, path *field.Path) field.ErrorList {
	if spec.Gang == nil {
		return nil
	}
	errs := validateTopology(spec.Gang.Topology, path.Child("topology"))
	errs = append(errs, validateMinResources(spec.Gang, path)...)
	if least := spec.Gang.MinAvailable; least != nil {
		total := int64(0)
		for i := range spec.Roles {
			total += wantedReplicas(spec, &spec.Roles[i])
		}
		if int64(*least) > total {
			errs = append(errs, field.Invalid(path.Child("minAvailable"), *least, fmt.Sprintf(
				"must be at most %d, the number of pods of all roles: the gang would wait for ever; lower it or leave it out", total)))
		}
	}
	return errs
}

func validateMinResources(gang *v1.Gang, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(gang.MinResources)) {
		if amount := gang.MinResources[name]; amount.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Child("minResources").Key(string(name)), amount.String(),
				"must be at least 0: give what must be free, or leave it out for the sum over the pods"))
		}
	}
	return errs
}

// validateElastic judges elastic by the number of workers. The Training
// Operator accepts crossed bounds and then fails each time it makes the
// autoscaler.
func validateElastic(spec *v1.TrainingJobSpec, path *field.Path) field.ErrorList {
	elastic := spec.Elastic
	if elastic == nil {
		return nil
	}
	path = path.Child("elastic")
	if fault := inelastic(spec); fault != "" {
		return field.ErrorList{field.Forbidden(path, fault)}
	}
	errs := ValidateMetrics(elastic.Metrics, path.Child("metrics"))
	least, most := elastic.MinReplicas, elastic.MaxReplicas
	if least != nil && *least < 1 {
		errs = append(errs, field.Invalid(path.Child("minReplicas"), *least,
			"must be greater than 0: a job cannot run without a worker; suspend it to free its pods"))
	}
	if least != nil && most != nil && *most < *least {
		return append(errs, field.Invalid(path.Child("maxReplicas"), *most, fmt.Sprintf(
			"must be at least minReplicas, which is %d: raise it or lower minReplicas", *least)))
	}
	return append(errs, validateElasticReplicas(spec, path)...)
}

// inelastic says why the number of workers cannot change, or nothing if it can.
// JAX is let through, as upstream lets it scale; PaddlePaddle stores the bounds
// without effect; MPI finds its hosts anew with Horovod.
func inelastic(spec *v1.TrainingJobSpec) string {
	if spec.Framework == v1.FrameworkXGBoost {
		return "an XGBoost job fixes its workers at the start: remove this block"
	}
	if spec.Framework == v1.FrameworkTensorFlow && (spec.TensorFlow == nil || spec.TensorFlow.Workers != v1.WorkersDynamic) {
		return "a TensorFlow job fixes its workers at the start: set tensorflow.workers to Dynamic, which is enableDynamicWorker in v1alpha1, or remove this block"
	}
	for i := range spec.Roles {
		if spec.Roles[i].Name == v1.RoleWorker {
			return ""
		}
	}
	return "only role Worker is elastic, and the job has none: add it or remove this block"
}

func validateElasticReplicas(spec *v1.TrainingJobSpec, path *field.Path) field.ErrorList {
	elastic := spec.Elastic
	if elastic.Replicas == nil {
		return nil
	}
	count, childPath := *elastic.Replicas, path.Child("replicas")
	if count < 1 {
		return field.ErrorList{field.Invalid(childPath, count, "must be at least 1: a job cannot run without a worker; suspend it by runPolicy.suspend to free its pods")}
	}
	if elastic.MinReplicas != nil && count < *elastic.MinReplicas {
		return field.ErrorList{field.Invalid(childPath, count, fmt.Sprintf(
			"must be at least minReplicas, which is %d: raise it or lower minReplicas", *elastic.MinReplicas))}
	}
	if elastic.MaxReplicas != nil && count > *elastic.MaxReplicas {
		return field.ErrorList{field.Invalid(childPath, count, fmt.Sprintf(
			"must be at most maxReplicas, which is %d: lower it or raise maxReplicas", *elastic.MaxReplicas))}
	}
	return nil
}
