// Package validation finds what would make an object meaningless: it is step 5
// of the flow, before the organisation's policies, and the reconcilers apply
// it again to what they read. What an organisation may want to change is a
// policy, not a rule here.
//
// ValidateX judges the typed v1 object by the invariants of its kind. Schema
// judges untyped content by a CRD's own schema and CEL in the API server's
// words, for requests that the API server holds to another version's schema.
// Tolerated keeps faults that were stored long ago from blocking updates.
//
// Everything is pure and bears any input. Paths are those of v1; conversion
// maps them to the version a request was made in. Each message is a short
// predicate and, after it, the fix. The package imports nothing but api/v1,
// the Kubernetes API types, apimachinery, and what the API server judges
// custom resources with.
package validation

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// ValidateTrainingJob returns every fault of a defaulted training job at once,
// with v1 field paths. On create old is nil.
//
// The rules on roles and containers are those of the Training Operator 1.9
// (pkg/webhooks), closed where it leaves a job hanging: it reserves no room
// for the suffix of pod names and accepts empty jobs and crossed bounds.
func ValidateTrainingJob(old, job *v1.TrainingJob) field.ErrorList {
	if job == nil {
		return nil
	}
	spec, path := &job.Spec, field.NewPath("spec")
	errs := validateName(job)
	errs = append(errs, validateFramework(spec, path)...)
	errs = append(errs, validateRoles(spec, path.Child("roles"))...)
	errs = append(errs, validateRunPolicy(spec.RunPolicy, path.Child("runPolicy"))...)
	errs = append(errs, validateGang(spec, path.Child("gang"))...)
	errs = append(errs, validateElastic(spec, path)...)
	errs = append(errs, validateRestart(spec, path.Child("roles"))...)
	if old != nil {
		errs = append(errs, validateTrainingJobUpdate(old, spec, path)...)
	}
	return errs
}

// generatedSuffix is what the API server appends to generateName, and how much
// of generateName it keeps at most (apiserver/pkg/storage/names).
const (
	generatedSuffix = "xxxxx"
	generatedBase   = validation.DNS1035LabelMaxLength - len(generatedSuffix)
)

// validateName makes sure that every pod and service of the job can be named:
// <job>-<role>-<index> is a label of DNS.
func validateName(job *v1.TrainingJob) field.ErrorList {
	path, name, generated := field.NewPath("metadata", "name"), job.Name, 0
	if name == "" && job.GenerateName != "" {
		path, generated = field.NewPath("metadata", "generateName"), len(generatedSuffix)
		name = job.GenerateName[:min(len(job.GenerateName), generatedBase)] + generatedSuffix
	}
	if name == "" {
		return nil
	}
	suffix := longestSuffix(&job.Spec)
	if excess := len(name) + len(suffix) - validation.DNS1035LabelMaxLength; excess > 0 {
		return field.ErrorList{field.Invalid(path, name, fmt.Sprintf(
			"is %s too long: the pod %s%s would have %d, and %d is the most; shorten it to %d or fewer",
			characters(excess), name, suffix, len(name)+len(suffix), validation.DNS1035LabelMaxLength,
			validation.DNS1035LabelMaxLength-len(suffix)-generated))}
	}
	if len(validation.IsDNS1035Label(name)) > 0 {
		return field.ErrorList{field.Invalid(path, name,
			"must be a DNS label, as pods and services are named after the job: "+
				"use lower-case letters, digits and -, beginning with a letter and ending with a letter or digit")}
	}
	return nil
}

func characters(count int) string {
	if count == 1 {
		return "1 character"
	}
	return fmt.Sprintf("%d characters", count)
}

// longestSuffix returns the longest -<role>-<index> that the job can come to
// have without a change of its spec but scaling.
func longestSuffix(spec *v1.TrainingJobSpec) string {
	longest := ""
	for i := range spec.Roles {
		role := &spec.Roles[i]
		count := wantedReplicas(spec, role)
		if scales(spec, role) && spec.Elastic.MaxReplicas != nil {
			count = max(count, int64(*spec.Elastic.MaxReplicas))
		}
		suffix := fmt.Sprintf("-%s-%d", strings.ToLower(string(role.Name)), max(count-1, 0))
		if len(suffix) > len(longest) {
			longest = suffix
		}
	}
	return longest
}

func scales(spec *v1.TrainingJobSpec, role *v1.Role) bool {
	return spec.Elastic != nil && role.Name == v1.RoleWorker
}

// wantedReplicas returns how many pods the role shall have now.
func wantedReplicas(spec *v1.TrainingJobSpec, role *v1.Role) int64 {
	switch {
	case scales(spec, role) && spec.Elastic.Replicas != nil:
		return int64(*spec.Elastic.Replicas)
	case role.Replicas != nil:
		return int64(*role.Replicas)
	default:
		return 1
	}
}

// validateTrainingJobUpdate holds what cannot change. The words equal those of
// the CEL rules in the schema, so that Distinct can fold both into one.
func validateTrainingJobUpdate(old *v1.TrainingJob, spec *v1.TrainingJobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if old.Spec.Framework != spec.Framework {
		errs = append(errs, field.Invalid(path.Child("framework"), spec.Framework,
			"framework cannot change: make a new job instead"))
	}
	if was, is := managedBy(&old.Spec), managedBy(spec); was != is {
		errs = append(errs, field.Invalid(path.Child("runPolicy", "managedBy"), is,
			"managedBy cannot change: make a new job instead"))
	}
	if was, is := queueName(&old.Spec), queueName(spec); was != is {
		errs = append(errs, field.Invalid(path.Child("gang", "queueName"), is,
			"queueName cannot change: make a new job instead"))
	}
	if old.Spec.Framework != spec.Framework {
		// All else that pods are made of is different then, too.
		return errs
	}
	return append(errs, validatePodsUpdate(old, spec, path)...)
}

func isSuspended(spec *v1.TrainingJobSpec) bool {
	return spec.RunPolicy != nil && spec.RunPolicy.Suspend != nil && *spec.RunPolicy.Suspend
}

// managedBy takes the name of Penstock itself for what it means: nothing said.
func managedBy(spec *v1.TrainingJobSpec) string {
	if spec.RunPolicy == nil || spec.RunPolicy.ManagedBy == nil || *spec.RunPolicy.ManagedBy == v1.ManagedByPenstock {
		return ""
	}
	return *spec.RunPolicy.ManagedBy
}

func queueName(spec *v1.TrainingJobSpec) string {
	if spec.Gang == nil {
		return ""
	}
	return spec.Gang.QueueName
}
