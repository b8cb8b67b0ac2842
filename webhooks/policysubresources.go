package webhooks

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

// A sideDoor is a subresource by which fields of an object change, of which a
// policy is not asked unless it names it.
type sideDoor struct {
	group string
	kinds []string
	name  string
	// reads reports whether what a rule reads changes by it.
	reads func(policies.ObjectRead) bool
	// text says what changes by it.
	text string
}

var sideDoors = []sideDoor{
	{group: "apps", kinds: []string{"Deployment", "ReplicaSet", "StatefulSet"}, name: "scale", reads: readsAt("spec", "replicas"), text: scaleText + "spec.replicas"},
	{kinds: []string{"ReplicationController"}, name: "scale", reads: readsAt("spec", "replicas"), text: scaleText + "spec.replicas"},
	{group: v1.GroupName, kinds: []string{v1.TrainingJobKind}, name: "scale", reads: readsAt("spec", "roles", "*", "replicas"), text: scaleText + "the replicas of a role"},
	{kinds: []string{"Pod"}, name: "resize", reads: ofContainers("resources"), text: "the resources of a pod's containers change"},
	{
		kinds: []string{"Pod"}, name: "ephemeralcontainers",
		reads: ofContainers("image", "imagePullPolicy", "securityContext", "command", "args", "env", "envFrom", "volumeMounts", "volumeDevices"),
		text:  "kubectl debug adds containers, in spec.ephemeralContainers,",
	},
}

const scaleText = "kubectl scale and autoscalers change "

// unnamedSubresources gives advice on subresources that a policy does not name and
// by which what its rule reads changes: whoever uses them walks past it.
func unnamedSubresources(spec *v1.WorkloadPolicySpec, compiled *policies.Policy) field.ErrorList {
	if !slices.Contains(policies.OperationsOf(&spec.Match), v1.OperationUpdate) {
		return nil
	}
	reads := compiled.ObjectReads()
	var advice field.ErrorList
	for _, door := range sideDoors {
		if !slices.ContainsFunc(reads, door.reads) {
			continue
		}
		for i, resources := range spec.Match.Resources {
			if door.passes(resources) && !door.named(&spec.Match) {
				advice = append(advice, field.Forbidden(field.NewPath("spec", "match", "resources").Index(i).Child("subresources"), fmt.Sprintf(
					"%s by the subresource %s, about which the policy is not asked: write subresources: [%s]", door.text, door.name, withSubresource(resources.Subresources, door.name))))
			}
		}
	}
	return advice
}

// passes reports whether objects of named resources change by the subresource.
func (d sideDoor) passes(resources v1.PolicyResources) bool {
	itself := len(resources.Subresources) == 0 || slices.Contains(resources.Subresources, "")
	return itself && resources.Group == d.group && slices.ContainsFunc(resources.Kinds, func(kind string) bool { return slices.Contains(d.kinds, kind) })
}

// named reports whether the policy names the subresource of these kinds, there or
// elsewhere.
func (d sideDoor) named(match *v1.PolicyMatch) bool {
	return slices.ContainsFunc(match.Resources, func(resources v1.PolicyResources) bool {
		return (resources.Group == d.group || resources.Group == "*") && (slices.Contains(resources.Subresources, d.name) || slices.Contains(resources.Subresources, "*"))
	})
}

func withSubresource(named []string, name string) string {
	if len(named) == 0 {
		named = []string{""}
	}
	var quoted []string
	for _, one := range append(slices.Clone(named), name) {
		if one == "" {
			one = `""`
		}
		quoted = append(quoted, one)
	}
	return strings.Join(quoted, ", ")
}

// readsAt reports of a read whether it is of a field.
func readsAt(path ...string) func(policies.ObjectRead) bool {
	return func(read policies.ObjectRead) bool { return slices.Equal(read.Path, path) }
}

// ofContainers reports of a read whether it is of some fields of a pod's
// containers, or of all there is of these.
func ofContainers(fields ...string) func(policies.ObjectRead) bool {
	return func(read policies.ObjectRead) bool {
		path := read.Path
		if len(path) < 3 || path[0] != "spec" || path[1] != "containers" && path[1] != "initContainers" {
			return false
		}
		return len(path) == 3 && read.Whole || len(path) > 3 && slices.Contains(fields, path[3])
	}
}
