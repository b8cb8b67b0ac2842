package conversion

import (
	"encoding/json"
	"math/rand/v2"
)

func randomHubCluster(r *rand.Rand) map[string]any {
	spec := map[string]any{}
	maybe(r, spec, "rayVersion", "2.52.0", "")
	names := []string{"Head", "Head", "gpu", "small-group", "0", "a/b", "head"}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var roles []any
	for _, name := range names[:r.IntN(4)] {
		roles = append(roles, randomHubRole(r, name))
	}
	if roles != nil {
		spec["roles"] = roles
	}
	policy := map[string]any{}
	maybe(r, policy, "suspend", true, false)
	maybe(r, policy, "managedBy", "kueue.x-k8s.io/multikueue", "")
	maybe(r, spec, "runPolicy", policy)
	if r.IntN(4) == 0 {
		spec["gang"] = randomGang(r, "queueName", "priorityClassName", "scheduler")
	}
	head := map[string]any{}
	maybe(r, head, "serviceType", "NodePort", "")
	maybe(r, head, "service", randomService(r))
	maybe(r, head, "serviceAnnotations", map[string]any{"a": "b"}, map[string]any{})
	ingress := randomIngress(r)
	maybe(r, ingress, "mode", "Enabled", "Disabled", "strange", "")
	maybe(r, head, "ingress", ingress)
	maybe(r, spec, "head", head)
	autoscaler := randomAutoscaler(r)
	maybe(r, autoscaler, "mode", "Enabled", "Disabled", "strange")
	maybe(r, spec, "autoscaler", autoscaler, map[string]any{})
	maybe(r, spec, "upgradeStrategy", randomUpgrade(r))
	maybe(r, spec, "gcsFaultTolerance", randomFaultTolerance(r))
	auth := map[string]any{}
	maybe(r, auth, "mode", "Disabled", "Token", "strange", "disabled")
	maybe(r, auth, "tokens", "Shared", "Kubernetes", "strange")
	maybe(r, auth, "secretName", "token", "")
	maybe(r, spec, "auth", auth)
	return spec
}

func randomHubRole(r *rand.Rand, name string) map[string]any {
	role := map[string]any{"name": name}
	maybe(r, role, "replicas", 0, 1, 7)
	maybe(r, role, "template", randomTemplate(r))
	scaling := map[string]any{}
	maybe(r, scaling, "minReplicas", 0, 1)
	maybe(r, scaling, "maxReplicas", json.Number("2147483647"))
	maybe(r, scaling, "workersToDelete", []any{"a", "b"}, []any{})
	maybe(r, scaling, "idleTimeoutSeconds", 60)
	maybe(r, scaling, "priority", 0, -1)
	maybe(r, role, "scaling", scaling)
	maybe(r, role, "hosts", 1, 4)
	maybe(r, role, "suspend", true, false)
	node := map[string]any{}
	maybe(r, node, "startParams", map[string]any{}, map[string]any{"num-cpus": "0"})
	maybe(r, node, "resources", map[string]any{"GPU": "1"})
	maybe(r, node, "labels", map[string]any{"zone": "a"})
	maybe(r, role, "ray", node)
	if r.IntN(4) == 0 {
		maybe(r, role, "restartPolicy", "Never", "")
		maybe(r, role, "topology", map[string]any{"required": "rack"})
	}
	return role
}

func randomAlphaCluster(r *rand.Rand) map[string]any {
	spec := map[string]any{}
	maybe(r, spec, "rayVersion", "2.52.0", "")
	if r.IntN(8) > 0 {
		head := randomGroup(r)
		maybe(r, head, "serviceType", "NodePort", "")
		maybe(r, head, "headService", randomService(r))
		maybe(r, head, "enableIngress", true, false)
		maybe(r, head, "ingressOptions", randomIngress(r))
		spec["headGroupSpec"] = head
	}
	names := []string{"gpu", "gpu", "small-group", "0", "a/b", "head", "Head", ""}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	groups := []any{}
	for _, name := range names[:r.IntN(4)] {
		group := randomGroup(r)
		maybe(r, group, "groupName", name)
		maybe(r, group, "replicas", 0, 1, 7)
		maybe(r, group, "minReplicas", 0, 1)
		maybe(r, group, "maxReplicas", json.Number("2147483647"))
		maybe(r, group, "numOfHosts", 1, 4)
		maybe(r, group, "suspend", true, false)
		maybe(r, group, "idleTimeoutSeconds", 60)
		maybe(r, group, "priority", 0, -1)
		maybe(r, group, "scaleStrategy", map[string]any{"workersToDelete": []any{"a"}}, map[string]any{"workersToDelete": []any{}}, map[string]any{})
		groups = append(groups, group)
	}
	maybe(r, spec, "workerGroupSpecs", groups)
	maybe(r, spec, "enableInTreeAutoscaling", true, false)
	maybe(r, spec, "autoscalerOptions", randomAutoscaler(r))
	maybe(r, spec, "suspend", true, false)
	maybe(r, spec, "managedBy", "kueue.x-k8s.io/multikueue", "")
	maybe(r, spec, "upgradeStrategy", randomUpgrade(r))
	maybe(r, spec, "gcsFaultToleranceOptions", randomFaultTolerance(r))
	maybe(r, spec, "headServiceAnnotations", map[string]any{"a": "b"}, map[string]any{})
	auth := map[string]any{}
	maybe(r, auth, "mode", "disabled", "token", "strange", "Token", "")
	maybe(r, auth, "enableK8sTokenAuth", true, false)
	maybe(r, auth, "secretName", "token", "")
	maybe(r, spec, "authOptions", auth)
	return spec
}

// randomGroup makes what the head and a group of workers have in common.
func randomGroup(r *rand.Rand) map[string]any {
	group := map[string]any{}
	maybe(r, group, "template", randomTemplate(r))
	maybe(r, group, "rayStartParams", map[string]any{}, map[string]any{"num-cpus": "0"}, map[string]any{"num-cpus": json.Number("0")})
	maybe(r, group, "resources", map[string]any{"GPU": "1"})
	maybe(r, group, "labels", map[string]any{"zone": "a"})
	return group
}

func randomService(r *rand.Rand) map[string]any {
	service := map[string]any{}
	metadata := map[string]any{}
	maybe(r, metadata, "name", "head", "")
	maybe(r, metadata, "labels", map[string]any{"a": "b"}, map[string]any{})
	maybe(r, service, "metadata", metadata)
	maybe(r, service, "spec", map[string]any{"ports": []any{map[string]any{"port": 1}}}, map[string]any{}, nil)
	return service
}

func randomIngress(r *rand.Rand) map[string]any {
	ingress := map[string]any{}
	maybe(r, ingress, "host", "ray.example", "")
	maybe(r, ingress, "path", "/")
	maybe(r, ingress, "pathType", "Prefix", "strange")
	maybe(r, ingress, "tls", []any{map[string]any{"hosts": []any{"ray.example"}}}, []any{})
	return ingress
}

func randomAutoscaler(r *rand.Rand) map[string]any {
	autoscaler := map[string]any{}
	maybe(r, autoscaler, "version", "v1", "v2", "strange")
	maybe(r, autoscaler, "upscalingMode", "Conservative", "strange")
	maybe(r, autoscaler, "idleTimeoutSeconds", 60)
	maybe(r, autoscaler, "image", "ray", "")
	maybe(r, autoscaler, "imagePullPolicy", "Always")
	maybe(r, autoscaler, "resources", map[string]any{"limits": map[string]any{"cpu": "0.5"}}, map[string]any{})
	maybe(r, autoscaler, "env", []any{map[string]any{"name": "a", "value": ""}}, []any{})
	maybe(r, autoscaler, "envFrom", []any{map[string]any{"secretRef": map[string]any{"name": "a"}}})
	maybe(r, autoscaler, "volumeMounts", []any{map[string]any{"name": "a", "mountPath": "/a"}})
	maybe(r, autoscaler, "securityContext", map[string]any{"runAsUser": 1000}, map[string]any{})
	maybe(r, autoscaler, "command", []any{"sh"}, []any{})
	maybe(r, autoscaler, "args", []any{"-c"})
	return autoscaler
}

func randomUpgrade(r *rand.Rand) map[string]any {
	strategy := map[string]any{}
	maybe(r, strategy, "type", "None", "Recreate", "RollingUpdate", "strange", "")
	maybe(r, strategy, "rollingUpdate", map[string]any{"maxUnavailable": 1}, map[string]any{"maxUnavailable": "20%"}, map[string]any{})
	return strategy
}

func randomFaultTolerance(r *rand.Rand) map[string]any {
	tolerance := map[string]any{}
	maybe(r, tolerance, "backend", "redis", "rocksdb")
	maybe(r, tolerance, "redisAddress", "redis:6379")
	maybe(r, tolerance, "redisUsername", map[string]any{"value": ""})
	maybe(r, tolerance, "redisPassword", map[string]any{"valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "a", "key": "b"}}}, map[string]any{})
	maybe(r, tolerance, "externalStorageNamespace", "ns")
	return tolerance
}
