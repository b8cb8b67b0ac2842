package validation

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// volumes judges the volumes of a pod and gives them by name.
func (f *findings) volumes(volumes []corev1.Volume, path *field.Path) map[string]*corev1.Volume {
	byName := make(map[string]*corev1.Volume, len(volumes))
	for i := range volumes {
		volume, volumePath := &volumes[i], path.Index(i)
		switch {
		case len(validation.IsDNS1123Label(volume.Name)) > 0:
			f.invalid(volumePath.Child("name"), volume.Name, "must be a DNS label: use at most 63 lower-case letters, digits and -")
		case byName[volume.Name] != nil:
			f.duplicate(volumePath.Child("name"), volume.Name, "is the name of two volumes: rename one of them")
		}
		byName[volume.Name] = volume
		// Of a volume that says nothing the API server makes an emptyDir.
		if set := sourcesOf(volume); len(set) > 1 {
			f.exactlyOne(volumePath, "", set)
		}
		f.commonSource(volume, volumePath)
		f.storageSource(volume, volumePath)
	}
	return byName
}

// sourcesOf names what a volume is.
func sourcesOf(v *corev1.Volume) []string {
	return members(
		member{"emptyDir", v.EmptyDir != nil}, member{"hostPath", v.HostPath != nil}, member{"gitRepo", v.GitRepo != nil},
		member{"gcePersistentDisk", v.GCEPersistentDisk != nil}, member{"awsElasticBlockStore", v.AWSElasticBlockStore != nil},
		member{"secret", v.Secret != nil}, member{"nfs", v.NFS != nil}, member{"iscsi", v.ISCSI != nil}, member{"glusterfs", v.Glusterfs != nil},
		member{"flocker", v.Flocker != nil}, member{"persistentVolumeClaim", v.PersistentVolumeClaim != nil}, member{"rbd", v.RBD != nil},
		member{"cinder", v.Cinder != nil}, member{"cephfs", v.CephFS != nil}, member{"quobyte", v.Quobyte != nil},
		member{"downwardAPI", v.DownwardAPI != nil}, member{"fc", v.FC != nil}, member{"flexVolume", v.FlexVolume != nil},
		member{"configMap", v.ConfigMap != nil}, member{"azureFile", v.AzureFile != nil}, member{"vsphereVolume", v.VsphereVolume != nil},
		member{"photonPersistentDisk", v.PhotonPersistentDisk != nil}, member{"portworxVolume", v.PortworxVolume != nil},
		member{"azureDisk", v.AzureDisk != nil}, member{"storageos", v.StorageOS != nil}, member{"projected", v.Projected != nil},
		member{"scaleIO", v.ScaleIO != nil}, member{"csi", v.CSI != nil}, member{"ephemeral", v.Ephemeral != nil}, member{"image", v.Image != nil},
	)
}

// commonSource judges volumes of what the cluster itself holds.
func (f *findings) commonSource(v *corev1.Volume, path *field.Path) {
	if v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil && v.EmptyDir.SizeLimit.Sign() < 0 {
		f.forbidden(path.Child("emptyDir", "sizeLimit"), "must not be negative: give the size, or leave it out")
	}
	if v.ConfigMap != nil {
		f.source(v.ConfigMap.Name, "the ConfigMap", path.Child("configMap", "name"))
		f.files(v.ConfigMap.Items, v.ConfigMap.DefaultMode, path.Child("configMap"))
	}
	if v.Secret != nil {
		f.source(v.Secret.SecretName, "the Secret", path.Child("secret", "secretName"))
		f.files(v.Secret.Items, v.Secret.DefaultMode, path.Child("secret"))
	}
	if v.PersistentVolumeClaim != nil {
		f.source(v.PersistentVolumeClaim.ClaimName, "the PersistentVolumeClaim", path.Child("persistentVolumeClaim", "claimName"))
	}
	if v.DownwardAPI != nil {
		f.mode(v.DownwardAPI.DefaultMode, path.Child("downwardAPI", "defaultMode"))
		for i := range v.DownwardAPI.Items {
			f.podFile(&v.DownwardAPI.Items[i], path.Child("downwardAPI", "items").Index(i))
		}
	}
	if v.Projected != nil {
		f.projected(v.Projected, path.Child("projected"))
	}
	if v.Ephemeral != nil {
		f.claimTemplate(v.Ephemeral.VolumeClaimTemplate, path.Child("ephemeral", "volumeClaimTemplate"))
	}
}

// storageSource judges volumes of what is outside of the cluster.
func (f *findings) storageSource(v *corev1.Volume, path *field.Path) {
	if v.HostPath != nil {
		f.source(v.HostPath.Path, "the path on the node", path.Child("hostPath", "path"))
		if slices.Contains(strings.Split(v.HostPath.Path, "/"), "..") {
			f.invalid(path.Child("hostPath", "path"), v.HostPath.Path, "must not have ..: write the whole path")
		}
		if v.HostPath.Type != nil {
			oneOf(f, path.Child("hostPath", "type"), *v.HostPath.Type, corev1.HostPathDirectoryOrCreate, corev1.HostPathDirectory,
				corev1.HostPathFileOrCreate, corev1.HostPathFile, corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev)
		}
	}
	if v.NFS != nil {
		f.source(v.NFS.Server, "the server", path.Child("nfs", "server"))
		if !strings.HasPrefix(v.NFS.Path, "/") {
			f.invalid(path.Child("nfs", "path"), v.NFS.Path, "must be a whole path: begin it with a slash")
		}
	}
	if v.CSI != nil {
		if len(v.CSI.Driver) > 63 {
			f.invalid(path.Child("csi", "driver"), v.CSI.Driver, "must be at most 63 characters: name the driver as its CSIDriver is named")
		}
		f.named(path.Child("csi", "driver"), strings.ToLower(v.CSI.Driver), "the driver")
		if v.CSI.NodePublishSecretRef != nil {
			f.named(path.Child("csi", "nodePublishSecretRef", "name"), v.CSI.NodePublishSecretRef.Name, "the Secret")
		}
	}
	if v.Image != nil {
		f.source(v.Image.Reference, "the image", path.Child("image", "reference"))
		oneOf(f, path.Child("image", "pullPolicy"), v.Image.PullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	}
}

// source holds that a volume says what it is made of.
func (f *findings) source(value, what string, path *field.Path) {
	if value == "" {
		f.required(path, "name "+what)
	}
}

func (f *findings) files(items []corev1.KeyToPath, mode *int32, path *field.Path) {
	f.mode(mode, path.Child("defaultMode"))
	for i, item := range items {
		itemPath := path.Child("items").Index(i)
		if item.Key == "" {
			f.required(itemPath.Child("key"), "name the key that becomes the file")
		}
		f.file(item.Path, itemPath.Child("path"))
		f.mode(item.Mode, itemPath.Child("mode"))
	}
}

func (f *findings) file(name string, path *field.Path) {
	f.source(name, "the file", path)
	f.relative(path, name)
}

// mode holds to what chmod takes.
func (f *findings) mode(mode *int32, path *field.Path) {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		f.invalid(path, *mode, "must be from 0 to 0777 in octal, which is 511: write it as 0440, or 288 in JSON")
	}
}

func (f *findings) podFile(file *corev1.DownwardAPIVolumeFile, path *field.Path) {
	f.file(file.Path, path.Child("path"))
	f.mode(file.Mode, path.Child("mode"))
	f.exactlyOne(path, "say what is in the file: write fieldRef or resourceFieldRef",
		members(member{"fieldRef", file.FieldRef != nil}, member{"resourceFieldRef", file.ResourceFieldRef != nil}))
	if file.FieldRef != nil {
		f.fieldRef(file.FieldRef, fileFields, path.Child("fieldRef"))
	}
	if file.ResourceFieldRef != nil {
		if file.ResourceFieldRef.ContainerName == "" {
			f.required(path.Child("resourceFieldRef", "containerName"), "name the container whose resources are meant")
		}
		f.resourceFieldRef(file.ResourceFieldRef, path.Child("resourceFieldRef"))
	}
}

func (f *findings) projected(projected *corev1.ProjectedVolumeSource, path *field.Path) {
	f.mode(projected.DefaultMode, path.Child("defaultMode"))
	taken := map[string]bool{}
	take := func(name string, at *field.Path) {
		if name != "" && taken[name] {
			f.invalid(at, name, "is the file of another source, too: give each a name of its own")
		}
		taken[name] = true
	}
	for i := range projected.Sources {
		source, sourcePath := &projected.Sources[i], path.Child("sources").Index(i)
		if set := members(member{"secret", source.Secret != nil}, member{"configMap", source.ConfigMap != nil}, member{"downwardAPI", source.DownwardAPI != nil},
			member{"serviceAccountToken", source.ServiceAccountToken != nil}, member{"clusterTrustBundle", source.ClusterTrustBundle != nil},
			member{"podCertificate", source.PodCertificate != nil}); len(set) > 1 {
			f.forbidden(sourcePath, fmt.Sprintf("must not have both %s and %s: make two sources of them", set[0], set[1]))
		}
		if source.Secret != nil {
			f.source(source.Secret.Name, "the Secret", sourcePath.Child("secret", "name"))
			f.files(source.Secret.Items, nil, sourcePath.Child("secret"))
			for j, item := range source.Secret.Items {
				take(item.Path, sourcePath.Child("secret", "items").Index(j).Child("path"))
			}
		}
		if source.ConfigMap != nil {
			f.source(source.ConfigMap.Name, "the ConfigMap", sourcePath.Child("configMap", "name"))
			f.files(source.ConfigMap.Items, nil, sourcePath.Child("configMap"))
			for j, item := range source.ConfigMap.Items {
				take(item.Path, sourcePath.Child("configMap", "items").Index(j).Child("path"))
			}
		}
		if source.DownwardAPI != nil {
			for j := range source.DownwardAPI.Items {
				f.podFile(&source.DownwardAPI.Items[j], sourcePath.Child("downwardAPI", "items").Index(j))
				take(source.DownwardAPI.Items[j].Path, sourcePath.Child("downwardAPI", "items").Index(j).Child("path"))
			}
		}
		if token := source.ServiceAccountToken; token != nil {
			f.token(token, sourcePath.Child("serviceAccountToken"))
		}
	}
}

// shortestToken and longestToken bound how long a token is good, in seconds.
const (
	shortestToken = 600
	longestToken  = math.MaxUint32 + 1
)

func (f *findings) token(token *corev1.ServiceAccountTokenProjection, path *field.Path) {
	f.file(token.Path, path.Child("path"))
	if seconds := token.ExpirationSeconds; seconds != nil {
		f.between(path.Child("expirationSeconds"), *seconds, shortestToken, longestToken, "give how many seconds the token is good, or leave it out for an hour")
	}
}

// claimTemplate judges the claim that is made with the pod.
func (f *findings) claimTemplate(template *corev1.PersistentVolumeClaimTemplate, path *field.Path) {
	if template == nil {
		f.required(path, "describe the claim: write its spec with accessModes and resources")
		return
	}
	f.labels(path.Child("metadata", "labels"), template.Labels)
	spec := path.Child("spec")
	if len(template.Spec.AccessModes) == 0 {
		f.required(spec.Child("accessModes"), "a claim needs one: write ReadWriteOnce, or what the storage can do")
	}
	for _, mode := range template.Spec.AccessModes {
		oneOf(f, spec.Child("accessModes"), mode, corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod)
	}
	if storage, set := template.Spec.Resources.Requests[corev1.ResourceStorage]; !set {
		f.required(spec.Child("resources").Key(string(corev1.ResourceStorage)), "say how much is claimed: write resources: {requests: {storage: 100Gi}}")
	} else if storage.Sign() <= 0 {
		f.invalid(spec.Child("resources").Key(string(corev1.ResourceStorage)), storage.String(), "must be greater than 0: say how much is claimed")
	}
}
