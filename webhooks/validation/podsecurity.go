package validation

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (f *findings) podSecurity(pod *corev1.PodSpec, path *field.Path) {
	context := pod.SecurityContext
	if context == nil {
		return
	}
	path = path.Child("securityContext")
	f.id(path.Child("runAsUser"), context.RunAsUser, "user")
	f.id(path.Child("runAsGroup"), context.RunAsGroup, "group")
	f.id(path.Child("fsGroup"), context.FSGroup, "group")
	for i := range context.SupplementalGroups {
		f.id(path.Child("supplementalGroups").Index(i), &context.SupplementalGroups[i], "group")
	}
	if context.FSGroupChangePolicy != nil {
		oneOf(f, path.Child("fsGroupChangePolicy"), *context.FSGroupChangePolicy, corev1.FSGroupChangeOnRootMismatch, corev1.FSGroupChangeAlways)
	}
	if context.SupplementalGroupsPolicy != nil {
		oneOf(f, path.Child("supplementalGroupsPolicy"), *context.SupplementalGroupsPolicy, corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)
	}
	f.seccomp(context.SeccompProfile, path.Child("seccompProfile"))
	f.appArmor(context.AppArmorProfile, path.Child("appArmorProfile"))
	seen := map[string]bool{}
	for i, sysctl := range context.Sysctls {
		at := path.Child("sysctls").Index(i).Child("name")
		switch {
		case sysctl.Name == "":
			f.required(at, "name the parameter of the kernel")
		case seen[sysctl.Name]:
			f.duplicate(at, sysctl.Name, "is set already: remove one of the two")
		case pod.HostNetwork && strings.HasPrefix(strings.ReplaceAll(sysctl.Name, "/", "."), "net."):
			f.invalid(at, sysctl.Name, "must not be set where hostNetwork is true: it would be the node's; remove one of the two")
		case strings.ContainsAny(sysctl.Name, " =:") || strings.ToLower(sysctl.Name) != sysctl.Name:
			f.invalid(at, sysctl.Name, "must be the name of a parameter of the kernel: write it as net.core.somaxconn")
		}
		seen[sysctl.Name] = true
	}
}

func (c *containerJudge) containerSecurity(context *corev1.SecurityContext, path *field.Path) {
	if context == nil {
		return
	}
	c.id(path.Child("runAsUser"), context.RunAsUser, "user")
	c.id(path.Child("runAsGroup"), context.RunAsGroup, "group")
	c.seccomp(context.SeccompProfile, path.Child("seccompProfile"))
	c.appArmor(context.AppArmorProfile, path.Child("appArmorProfile"))
	if context.ProcMount != nil {
		oneOf(c.findings, path.Child("procMount"), *context.ProcMount, corev1.DefaultProcMount, corev1.UnmaskedProcMount)
		if *context.ProcMount == corev1.UnmaskedProcMount && (c.pod.HostUsers == nil || *c.pod.HostUsers) {
			c.invalid(path.Child("procMount"), string(*context.ProcMount), "must not be Unmasked unless the pod's hostUsers is false: write Default, or set hostUsers")
		}
	}
	if escalation := context.AllowPrivilegeEscalation; escalation == nil || *escalation {
		return
	}
	if context.Privileged != nil && *context.Privileged {
		c.invalid(path.Child("allowPrivilegeEscalation"), false, "must not be false where privileged is true: remove one of the two")
	}
	if context.Capabilities != nil {
		for _, capability := range context.Capabilities.Add {
			if capability == "CAP_SYS_ADMIN" {
				c.invalid(path.Child("allowPrivilegeEscalation"), false, "must not be false beside the capability CAP_SYS_ADMIN: remove one of the two")
			}
		}
	}
}

// id judges the number of a user or a group.
func (f *findings) id(path *field.Path, id *int64, what string) {
	if id != nil && len(validation.IsValidUserID(*id)) > 0 {
		f.invalid(path, *id, "must be from 0 to 2147483647: give the number of a "+what)
	}
}

func (f *findings) seccomp(profile *corev1.SeccompProfile, path *field.Path) {
	if profile == nil {
		return
	}
	if profile.Type == "" {
		f.required(path.Child("type"), "write RuntimeDefault, Localhost or Unconfined")
	}
	oneOf(f, path.Child("type"), profile.Type, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeUnconfined)
	f.localhost(profile.LocalhostProfile, profile.Type == corev1.SeccompProfileTypeLocalhost, path.Child("localhostProfile"))
	if profile.LocalhostProfile != nil {
		f.relative(path.Child("localhostProfile"), *profile.LocalhostProfile)
	}
}

func (f *findings) appArmor(profile *corev1.AppArmorProfile, path *field.Path) {
	if profile == nil {
		return
	}
	if profile.Type == "" {
		f.required(path.Child("type"), "write RuntimeDefault, Localhost or Unconfined")
	}
	oneOf(f, path.Child("type"), profile.Type, corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeUnconfined)
	f.localhost(profile.LocalhostProfile, profile.Type == corev1.AppArmorProfileTypeLocalhost, path.Child("localhostProfile"))
}

// localhost holds the name of a profile on the node to the type that takes one.
func (f *findings) localhost(profile *string, local bool, path *field.Path) {
	switch {
	case local && profile == nil:
		f.required(path, "type Localhost needs the profile on the node: name it")
	case !local && profile != nil:
		f.invalid(path, *profile, "is only for type Localhost: remove it, or change the type")
	}
}
