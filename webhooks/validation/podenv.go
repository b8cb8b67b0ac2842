package validation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What the downward API gives to variables and to files.
var (
	variableFields = []string{"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}
	fileFields     = []string{"metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations"}
	resourceFields = []string{"limits.cpu", "limits.memory", "limits.ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage"}
)

func (c *containerJudge) variable(variable *corev1.EnvVar, path *field.Path) {
	switch {
	case variable.Name == "":
		c.required(path.Child("name"), "name the variable or remove it")
	case len(validation.IsRelaxedEnvVarName(variable.Name)) > 0:
		c.invalid(path.Child("name"), variable.Name, "must be the name of a variable: use printable characters, and no =")
	}
	from, fromPath := variable.ValueFrom, path.Child("valueFrom")
	if from == nil {
		return
	}
	if variable.Value != "" {
		c.invalid(fromPath, "", "must not stand beside value: keep one of the two")
	}
	c.exactlyOne(fromPath, "say where the value comes from: write one of fieldRef, resourceFieldRef, configMapKeyRef and secretKeyRef", members(
		member{"fieldRef", from.FieldRef != nil}, member{"resourceFieldRef", from.ResourceFieldRef != nil}, member{"configMapKeyRef", from.ConfigMapKeyRef != nil},
		member{"secretKeyRef", from.SecretKeyRef != nil}, member{"fileKeyRef", from.FileKeyRef != nil}))
	if from.FieldRef != nil {
		c.fieldRef(from.FieldRef, variableFields, fromPath.Child("fieldRef"))
	}
	if from.ResourceFieldRef != nil {
		c.resourceFieldRef(from.ResourceFieldRef, fromPath.Child("resourceFieldRef"))
	}
	if from.ConfigMapKeyRef != nil {
		c.keyRef(from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key, "the ConfigMap", fromPath.Child("configMapKeyRef"))
	}
	if from.SecretKeyRef != nil {
		c.keyRef(from.SecretKeyRef.Name, from.SecretKeyRef.Key, "the Secret", fromPath.Child("secretKeyRef"))
	}
	if from.FileKeyRef != nil {
		c.fileKeyRef(from.FileKeyRef, fromPath.Child("fileKeyRef"))
	}
}

func (c *containerJudge) keyRef(name, key, what string, path *field.Path) {
	c.named(path.Child("name"), name, what)
	if key == "" {
		c.required(path.Child("key"), "name the key of "+what)
	} else if len(validation.IsConfigMapKey(key)) > 0 {
		c.invalid(path.Child("key"), key, "must be a key of "+what+": use letters, digits, -, _ and dots")
	}
}

func (c *containerJudge) fileKeyRef(ref *corev1.FileKeySelector, path *field.Path) {
	if ref.Key == "" {
		c.required(path.Child("key"), "name the variable in the file")
	}
	if ref.Path == "" {
		c.required(path.Child("path"), "name the file")
	}
	c.relative(path.Child("path"), ref.Path)
	if volume := c.volumes[ref.VolumeName]; volume == nil {
		c.reference(ref.VolumeName, path.Child("volumeName"))
	} else if volume.EmptyDir == nil {
		c.invalid(path.Child("volumeName"), ref.VolumeName, "must be a volume of type emptyDir: name one that is")
	}
}

// fieldRef judges a reference to a field of the pod.
func (f *findings) fieldRef(ref *corev1.ObjectFieldSelector, known []string, path *field.Path) {
	if ref.FieldPath == "" {
		f.required(path.Child("fieldPath"), "name the field: write it as "+known[0])
		return
	}
	if ref.APIVersion != "" && ref.APIVersion != "v1" {
		f.invalid(path.Child("apiVersion"), ref.APIVersion, "must be v1: leave it out")
	}
	if name, key, ok := subscripted(ref.FieldPath); ok && (name == "metadata.labels" || name == "metadata.annotations") {
		if name == "metadata.annotations" {
			key = strings.ToLower(key)
		}
		if len(validation.IsQualifiedName(key)) > 0 {
			f.invalid(path.Child("fieldPath"), ref.FieldPath, "must have a key in its brackets: write it as "+name+"['example.com/team']")
		}
		return
	}
	if ref.FieldPath == "spec.host" && slices.Contains(known, "spec.nodeName") {
		// The old name of spec.nodeName, which is still read.
		return
	}
	if !slices.Contains(known, ref.FieldPath) {
		fields := known
		if slices.Contains(known, "spec.nodeName") {
			fields = append(slices.Clone(known), "metadata.labels['<key>']", "metadata.annotations['<key>']")
		}
		f.errs = append(f.errs, notAmong(path.Child("fieldPath"), ref.FieldPath, fields))
	}
}

// subscripted splits a path of the form name['key'].
func subscripted(path string) (name, key string, ok bool) {
	name, rest, ok := strings.Cut(path, "['")
	if !ok {
		return "", "", false
	}
	key, ok = strings.CutSuffix(rest, "']")
	return name, key, ok
}

// resourceFieldRef judges a reference to the resources of a container. In files
// it has to name which.
func (f *findings) resourceFieldRef(ref *corev1.ResourceFieldSelector, path *field.Path) {
	switch {
	case ref.Resource == "":
		f.required(path.Child("resource"), "name the resource: write it as limits.memory")
		return
	case strings.HasPrefix(ref.Resource, "limits.hugepages-"), strings.HasPrefix(ref.Resource, "requests.hugepages-"):
	case !slices.Contains(resourceFields, ref.Resource):
		f.errs = append(f.errs, notAmong(path.Child("resource"), ref.Resource, resourceFields))
		return
	}
	if ref.Divisor.IsZero() {
		return
	}
	divisors := []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
	if strings.HasSuffix(ref.Resource, ".cpu") {
		divisors = []string{"1", "1m"}
	}
	if !slices.Contains(divisors, ref.Divisor.String()) {
		f.invalid(path.Child("divisor"), quantityText(ref.Divisor), "must be "+strings.Join(divisors, ", ")+": write one of these, or leave it out for 1")
	}
}

func quantityText(quantity resource.Quantity) string { return quantity.String() }

func (c *containerJudge) variablesFrom(from *corev1.EnvFromSource, path *field.Path) {
	if from.Prefix != "" && len(validation.IsRelaxedEnvVarName(from.Prefix)) > 0 {
		c.invalid(path.Child("prefix"), from.Prefix, "must be the start of the name of a variable: use printable characters, and no =")
	}
	c.exactlyOne(path, "say where the variables come from: write configMapRef or secretRef",
		members(member{"configMapRef", from.ConfigMapRef != nil}, member{"secretRef", from.SecretRef != nil}))
	if from.ConfigMapRef != nil {
		c.named(path.Child("configMapRef", "name"), from.ConfigMapRef.Name, "the ConfigMap")
	}
	if from.SecretRef != nil {
		c.named(path.Child("secretRef", "name"), from.SecretRef.Name, "the Secret")
	}
}
