package main

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/cmd/penstock/render"
	"github.com/penstock-dev/penstock/reconcilers/plan"
	"github.com/penstock-dev/penstock/reconcilers/ray"
	"github.com/penstock-dev/penstock/reconcilers/training"
	"github.com/penstock-dev/penstock/webhooks/defaulting"
	"github.com/penstock-dev/penstock/webhooks/validation"
)

// trainingJobs is the kind TrainingJob as the loop reconciles it, with the
// defaults and invariants of admission.
func trainingJobs() plan.Kind[*v1.TrainingJob, v1.TrainingJobStatus] {
	return training.Kind(defaulting.DefaultTrainingJob, func(job *v1.TrainingJob) field.ErrorList {
		return validation.ValidateTrainingJob(nil, job)
	})
}

// rayClusters is the kind RayCluster in the same way.
func rayClusters() plan.Kind[*v1.RayCluster, v1.RayClusterStatus] {
	return ray.Kind(defaulting.DefaultRayCluster, func(cluster *v1.RayCluster) field.ErrorList {
		return validation.ValidateRayCluster(nil, cluster)
	})
}

// renderer gives the function that makes the children of an admitted v1 object.
func renderer(now time.Time) (func(hub []byte) ([]render.Child, error), error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return func(hub []byte) ([]render.Child, error) {
		var object struct{ Kind string }
		if err := json.Unmarshal(hub, &object); err != nil {
			return nil, fmt.Errorf("failed to read the object: %w", err)
		}
		switch object.Kind {
		case v1.RayClusterKind:
			return render.Children(rayClusters(), scheme, hub, now)
		case v1.TrainingJobKind:
			return render.Children(trainingJobs(), scheme, hub, now)
		default:
			return nil, nil
		}
	}, nil
}
