package validation

import (
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// validateRendezvous finds what keeps the pods of a PyTorch job from meeting.
func validateRendezvous(spec *v1.TrainingJobSpec, path *field.Path) field.ErrorList {
	if spec.PyTorch.Rendezvous == nil {
		return nil
	}
	var errs field.ErrorList
	if host := spec.PyTorch.Rendezvous.Host; host != nil && !isHost(*host) {
		errs = append(errs, field.Invalid(path.Child("host"), *host,
			"must be the name or the address of a host: write it as etcd.storage.svc, with the port in its own field, or leave it out for the first worker"))
	}
	for i, option := range spec.PyTorch.Rendezvous.Options {
		optionPath := path.Child("options").Index(i)
		if strings.ContainsAny(option.Key, ",=") {
			errs = append(errs, field.Invalid(optionPath.Child("key"), option.Key, "must be one name, as torchrun is given options as key=value,key=value: take out , and ="))
		}
		if value := ptr.Deref(option.Value, ""); strings.Contains(value, ",") {
			errs = append(errs, field.Invalid(optionPath.Child("value"), value, "must not have a comma, at which torchrun begins the next option: take it out"))
		}
	}
	if spec.PyTorch.Rendezvous.Mode == v1.RendezvousStandalone {
		if pods := mostPods(spec); pods > 1 {
			errs = append(errs, field.Invalid(path.Child("mode"), v1.RendezvousStandalone, fmt.Sprintf(
				"must not be set for a job of up to %d pods: each would meet nobody but itself, and train alone; remove it, or make the job of 1 pod", pods)))
		}
	}
	return errs
}

// isHost takes a reference to a variable for what it may become.
func isHost(host string) bool {
	if strings.Contains(host, "$(") {
		return true
	}
	if _, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")); err == nil {
		return true
	}
	return len(validation.IsDNS1123Subdomain(strings.ToLower(strings.TrimSuffix(host, ".")))) == 0
}

// mostPods is how many pods the job can come to have by scaling.
func mostPods(spec *v1.TrainingJobSpec) int64 {
	total := int64(0)
	for i := range spec.Roles {
		role := &spec.Roles[i]
		count := wantedReplicas(spec, role)
		if scales(spec, role) && spec.Elastic.MaxReplicas != nil {
			count = max(count, int64(*spec.Elastic.MaxReplicas))
		}
		total += count
	}
	return total
}
