package check

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/webhooks/defaulting"
)

// Policies reads WorkloadPolicies, and holds them to what the cluster holds
// them to. Objects of other kinds are left out; it is an error if no policy is
// left. It also gives what the cluster would warn their author of, a line each.
// The system namespaces are as in Options.
func Policies(ctx context.Context, objects []Object, systemNamespaces []string) (found []*penstockv1.WorkloadPolicy, warnings []string, err error) {
	checker, err := New(Options{SystemNamespaces: systemNamespaces})
	if err != nil {
		return nil, nil, err
	}
	return checker.Policies(ctx, objects)
}

// Policies is the function of that name, for a Checker that was made without
// policies.
func (c *Checker) Policies(ctx context.Context, objects []Object) (found []*penstockv1.WorkloadPolicy, warnings []string, err error) {
	names := map[string]Object{}
	for _, object := range objects {
		result := c.Check(ctx, object)
		if result.Kind != penstockv1.WorkloadPolicyKind || !result.Judged {
			continue
		}
		at := place(object.File, object.Document, object.Items)
		if !result.Allowed {
			return nil, nil, fmt.Errorf("%s: policy %s would be refused:\n  %s", at, result.Name, joined(result.Faults))
		}
		if other, taken := names[result.Name]; taken {
			return nil, nil, fmt.Errorf("%s: policy %s is in %s, too", at, result.Name, place(other.File, other.Document, other.Items))
		}
		names[result.Name] = object
		for _, warning := range result.Warnings {
			warnings = append(warnings, fmt.Sprintf("%s: policy %s: %s", at, result.Name, warning))
		}
		policy := &penstockv1.WorkloadPolicy{}
		if err := json.Unmarshal(object.JSON, policy); err != nil {
			return nil, nil, fmt.Errorf("%s: failed to read policy %s: %w", at, result.Name, err)
		}
		defaulting.DefaultWorkloadPolicy(policy)
		found = append(found, policy)
	}
	if len(found) == 0 {
		return nil, nil, fmt.Errorf("found no %s of %s", penstockv1.WorkloadPolicyKind, penstockv1.GroupVersion)
	}
	return found, warnings, nil
}

func joined(faults []Fault) string {
	lines := make([]string, len(faults))
	for i, fault := range faults {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n  ")
}

// Namespaces reads the labels of namespaces by name. It is an error if an
// object is no Namespace.
func Namespaces(objects []Object) (map[string]map[string]string, error) {
	found := map[string]map[string]string{}
	for _, object := range objects {
		var namespace corev1.Namespace
		at := place(object.File, object.Document, object.Items)
		if err := json.Unmarshal(object.JSON, &namespace); err != nil {
			return nil, fmt.Errorf("%s: failed to read the Namespace: %w", at, err)
		}
		if namespace.APIVersion != "v1" || namespace.Kind != "Namespace" || namespace.Name == "" {
			return nil, fmt.Errorf("%s: must be a Namespace with a name, not %s %s", at, namespace.Kind, namespace.Name)
		}
		found[namespace.Name] = labelled(namespace.Name, namespace.Labels)
	}
	return found, nil
}

// labelled gives the labels of a namespace with the one that the API server itself
// writes.
func labelled(name string, written map[string]string) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, written)
	labels[corev1.LabelMetadataName] = name
	return labels
}
