package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MayBePolicy is the origin of a fault that a policy of the library says too,
// in words that fit the organisation: where one says it, this need not be said.
const MayBePolicy = "penstock.dev/may-be-policy"

// resourceKind is where amounts stand, and which names they may have there.
type resourceKind struct {
	names []corev1.ResourceName
	// extended allows amounts of devices.
	extended bool
}

var (
	containerResource = resourceKind{[]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}, true}
	podResource       = resourceKind{[]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}, false}
)

func (f *findings) podResources(pod *corev1.PodSpec, path *field.Path) {
	if pod.Overhead != nil {
		f.resources(&corev1.ResourceRequirements{Limits: pod.Overhead}, path.Child("overhead"), containerResource)
	}
	if pod.Resources == nil {
		return
	}
	path = path.Child("resources")
	f.resources(pod.Resources, path, podResource)
	if pod.Resources.Claims != nil {
		f.forbidden(path.Child("claims"), "cannot be set for the whole pod: write the claims into its containers")
	}
	for _, name := range slices.Sorted(maps.Keys(pod.Resources.Requests)) {
		all, sum := pod.Resources.Requests[name], resource.Quantity{}
		for i := range pod.Containers {
			sum.Add(effectiveRequest(&pod.Containers[i].Resources, name))
		}
		if sum.Cmp(all) > 0 {
			f.invalid(path.Child("requests").Key(string(name)), all.String(), fmt.Sprintf("must be at least %s, which its containers request together: raise it", sum.String()))
		}
	}
	for i := range pod.Containers {
		for _, name := range slices.Sorted(maps.Keys(pod.Containers[i].Resources.Limits)) {
			limit := pod.Containers[i].Resources.Limits[name]
			if all, set := pod.Resources.Limits[name]; set && limit.Cmp(all) > 0 {
				f.invalid(path.Child("limits").Key(string(name)), all.String(), fmt.Sprintf("must be at least %s, the limit of container %s: raise it", limit.String(), pod.Containers[i].Name))
			}
		}
	}
}

// effectiveRequest is what a container requests: its limit where it says nothing.
func effectiveRequest(amounts *corev1.ResourceRequirements, name corev1.ResourceName) resource.Quantity {
	if amount, set := amounts.Requests[name]; set {
		return amount
	}
	return amounts.Limits[name]
}

// resources judges the amounts that a container or a pod asks for.
func (f *findings) resources(amounts *corev1.ResourceRequirements, path *field.Path, kind resourceKind) {
	f.amounts(amounts.Limits, nil, path.Child("limits"), kind)
	f.amounts(amounts.Requests, amounts.Limits, path.Child("requests"), kind)
	for _, name := range slices.Sorted(maps.Keys(amounts.Requests)) {
		if kind.misnamed(name) != "" {
			continue
		}
		request := amounts.Requests[name]
		limit, limited := amounts.Limits[name]
		requestPath := path.Child("requests").Key(string(name))
		switch {
		case !limited && !isShared(name):
			f.required(path.Child("limits").Key(string(name)), "what cannot be shared needs a limit: write the request's amount, or leave the request out")
		case limited && !isShared(name) && request.Cmp(limit) != 0:
			f.maybe(field.Invalid(requestPath, request.String(), fmt.Sprintf("must be equal to the limit, which is %s: write the same in both places, or leave the request out", limit.String())))
		case limited && request.Cmp(limit) > 0:
			f.invalid(requestPath, request.String(), fmt.Sprintf("must be at most the limit, which is %s: lower it, or raise the limit", limit.String()))
		}
	}
	f.hugePages(amounts, path)
}

func (f *findings) hugePages(amounts *corev1.ResourceRequirements, path *field.Path) {
	huge, usual := false, false
	for _, list := range []corev1.ResourceList{amounts.Limits, amounts.Requests} {
		for name := range list {
			huge = huge || isHugePages(name)
			usual = usual || name == corev1.ResourceCPU || name == corev1.ResourceMemory
		}
	}
	if huge && !usual {
		f.forbidden(path, "must have cpu or memory beside huge pages: write an amount of one of them")
	}
}

// maybe adds a fault that a policy may say better.
func (f *findings) maybe(fault *field.Error) { f.errs = append(f.errs, fault.WithOrigin(MayBePolicy)) }

// amounts judges each amount by itself. One that is as said already is a fault
// there: defaults write limits into requests.
func (f *findings) amounts(amounts, said corev1.ResourceList, path *field.Path, kind resourceKind) {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		amount, amountPath := amounts[name], path.Key(string(name))
		if same, is := said[name]; is && same.Cmp(amount) == 0 {
			continue
		}
		if fault := kind.misnamed(name); fault != "" {
			f.maybe(field.Invalid(amountPath, string(name), fault))
		}
		switch {
		case amount.Sign() < 0:
			f.invalid(amountPath, amount.String(), "must be at least 0: ask for what the container needs, or leave it out")
		case isExtended(name) && amount.MilliValue()%1000 != 0:
			f.maybe(field.Invalid(amountPath, amount.String(), "must be a whole number: devices cannot be asked for in parts"))
		case isHugePages(name) && !isWholePages(name, amount):
			f.invalid(amountPath, amount.String(), "must be a multiple of the size of its pages: round it up")
		}
	}
}

// misnamed says why nothing can be asked for by a name.
func (k resourceKind) misnamed(name corev1.ResourceName) string {
	switch {
	case isHugePages(name) || slices.Contains(k.names, name):
		return ""
	case !strings.Contains(string(name), "/"):
		fix := "write " + strings.Join(texts(k.names), ", ")
		if near := Nearest(string(name), texts(k.names)); near != "" {
			fix = fmt.Sprintf("did you mean %s?", near)
		}
		if k.extended {
			return "is no resource of Kubernetes, and those of devices have a domain before a slash: " + fix
		}
		return "is no resource of a whole pod: " + fix
	case !k.extended:
		return "is no resource of a whole pod: write it into a container"
	case len(validation.IsQualifiedName(string(name))) > 0 || strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix),
		isExtended(name) && len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) > 0:
		return "must be the name of a resource: write it as nvidia.com/gpu"
	default:
		return ""
	}
}

// isShared says whether containers may be promised less than they may use.
func isShared(name corev1.ResourceName) bool { return !isExtended(name) && !isHugePages(name) }

// isExtended says whether a name is one of a device: it has a domain, and not
// that of Kubernetes.
func isExtended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func isWholePages(name corev1.ResourceName, amount resource.Quantity) bool {
	size, err := resource.ParseQuantity(strings.TrimPrefix(string(name), corev1.ResourceHugePagesPrefix))
	return err == nil && size.Value() > 0 && amount.Value()%size.Value() == 0
}

// podClaims judges the claims of devices that a pod names.
func (f *findings) podClaims(claims []corev1.PodResourceClaim, path *field.Path) {
	seen := map[string]bool{}
	for i, claim := range claims {
		claimPath := path.Index(i)
		switch {
		case claim.Name == "":
			f.required(claimPath.Child("name"), "name the claim, so that containers can ask for it")
		case seen[claim.Name]:
			f.duplicate(claimPath.Child("name"), claim.Name, "is the name of two claims: rename one of them")
		}
		f.label(claimPath.Child("name"), claim.Name)
		seen[claim.Name] = true
		f.exactlyOne(claimPath, "say what is claimed: write resourceClaimName or resourceClaimTemplateName", members(
			member{"resourceClaimName", claim.ResourceClaimName != nil}, member{"resourceClaimTemplateName", claim.ResourceClaimTemplateName != nil}))
		if claim.ResourceClaimName != nil {
			f.named(claimPath.Child("resourceClaimName"), *claim.ResourceClaimName, "the ResourceClaim")
		}
		if claim.ResourceClaimTemplateName != nil {
			f.named(claimPath.Child("resourceClaimTemplateName"), *claim.ResourceClaimTemplateName, "the ResourceClaimTemplate")
		}
	}
}

// claims judges which of the pod's claims a container asks for.
func (c *containerJudge) claims(claims []corev1.ResourceClaim, path *field.Path) {
	names := make([]string, 0, len(c.pod.ResourceClaims))
	for _, claim := range c.pod.ResourceClaims {
		names = append(names, claim.Name)
	}
	seen := map[corev1.ResourceClaim]bool{}
	for i, claim := range claims {
		switch {
		case claim.Name == "":
			c.required(path.Index(i), "name one of the pod's resourceClaims")
		case !slices.Contains(names, claim.Name):
			fix := "add it to them"
			if near := Nearest(claim.Name, names); near != "" {
				fix = fmt.Sprintf("did you mean %s?", near)
			}
			fault := field.NotFound(path.Index(i), claim.Name)
			fault.Detail = "is none of the pod's resourceClaims: " + fix
			c.maybe(fault)
		case seen[claim] || seen[corev1.ResourceClaim{Name: claim.Name}]:
			c.duplicate(path.Index(i), claim.Name, "is asked for already: remove one of the two")
		}
		c.label(path.Index(i).Child("request"), claim.Request)
		seen[claim] = true
	}
}

func (c *containerJudge) resizePolicy(policies []corev1.ContainerResizePolicy, path *field.Path) {
	seen := map[corev1.ResourceName]bool{}
	for i, policy := range policies {
		if policy.ResourceName == "" || policy.RestartPolicy == "" {
			c.required(path.Index(i), "write both resourceName and restartPolicy")
		}
		oneOf(c.findings, path.Index(i).Child("resourceName"), policy.ResourceName, corev1.ResourceCPU, corev1.ResourceMemory)
		oneOf(c.findings, path.Index(i).Child("restartPolicy"), policy.RestartPolicy, corev1.NotRequired, corev1.RestartContainer)
		if seen[policy.ResourceName] {
			c.duplicate(path.Index(i), string(policy.ResourceName), "is in the list already: remove one of the two")
		}
		seen[policy.ResourceName] = true
	}
}
