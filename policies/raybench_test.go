package policies_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies/library"
)

// benchCluster is a sound Ray cluster with an autoscaler and two groups.
const benchCluster = `{"apiVersion":"penstock.dev/v1","kind":"RayCluster","metadata":{"name":"tuner","namespace":"team"},"spec":{
"rayVersion":"2.52.0","runPolicy":{"suspend":false},"autoscaler":{"mode":"Enabled","version":"v2"},"roles":[
{"name":"Head","replicas":1,"ray":{"startParams":{"num-cpus":"0"}},"template":{"spec":{"restartPolicy":"Never","containers":[
{"name":"ray-head","image":"registry.example/ray:1","resources":{"limits":{"cpu":"4","memory":"16Gi"}}}]}}},
{"name":"gpu","replicas":2,"hosts":1,"scaling":{"minReplicas":0,"maxReplicas":8},"ray":{"startParams":{}},"template":{"spec":{"restartPolicy":"Never",
"tolerations":[{"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"}],"containers":[
{"name":"ray-worker","image":"registry.example/ray:1","resources":{"limits":{"cpu":"16","memory":"64Gi","nvidia.com/gpu":"2"},"requests":{"nvidia.com/gpu":"2"}}}]}}},
{"name":"cpu","replicas":2,"hosts":1,"scaling":{"minReplicas":0,"maxReplicas":8},"template":{"spec":{"restartPolicy":"Never","containers":[
{"name":"ray-worker","image":"registry.example/ray:1","resources":{"limits":{"cpu":"16","memory":"64Gi"}}}]}}}]}}`

func BenchmarkJudgeRayCluster(b *testing.B) {
	loaded, err := library.Policies()
	if err != nil {
		b.Fatal(err)
	}
	request := createRequest([]byte(benchCluster))
	request.Kind = metav1.GroupVersionKind{Group: v1.GroupName, Version: "v1", Kind: v1.RayClusterKind}
	loaded = slices.DeleteFunc(loaded, func(policy *v1.WorkloadPolicy) bool {
		return len(policy.Spec.MatchConditions) > 0 || !slices.Contains(policy.Spec.Match.Resources[0].Kinds, v1.RayClusterKind)
	})
	b.Run("the library", func(b *testing.B) { benchJudge(b, loaded, request, len(loaded)) })
	for _, policy := range loaded {
		b.Run(policy.Name, func(b *testing.B) { benchJudge(b, []*v1.WorkloadPolicy{policy}, request, 1) })
	}
}
