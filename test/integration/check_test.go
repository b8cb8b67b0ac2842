package integration

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/cmd/penstock/check"
	"github.com/penstock-dev/penstock/policies/library"
	"github.com/penstock-dev/penstock/test/cluster"
)

var _ = Describe("penstock check", func() {
	It("says what the cluster says, word for word", func(ctx context.Context) {
		root, err := cluster.ModuleRoot()
		Expect(err).NotTo(HaveOccurred())
		policies, err := library.Policies()
		Expect(err).NotTo(HaveOccurred())
		ns := newNamespace(ctx, nil)
		checker, err := check.New(check.Options{Policies: policies, Namespace: ns, Now: time.Now()})
		Expect(err).NotTo(HaveOccurred())
		objects, _ := check.Load([]string{filepath.Join(root, "cmd", "penstock", "testdata", "check")}, false, nil)

		judged := 0
		for _, object := range objects {
			var content map[string]any
			Expect(json.Unmarshal(object.JSON, &content)).To(Succeed())
			manifest := &unstructured.Unstructured{Object: content}
			resource := map[string]string{v1.TrainingJobKind: "trainingjobs", v1.WorkloadPolicyKind: "workloadpolicies"}[manifest.GetKind()]
			version := manifest.GroupVersionKind().GroupVersion()
			// JSON that was sent by kubectl has no key twice.
			if resource == "" || version.Group != v1.GroupName || version.Version == "v2" || len(object.Repeated) > 0 {
				continue
			}
			path := []string{"/apis", version.Group, version.Version}
			if resource == "trainingjobs" {
				manifest.SetNamespace(ns)
				path = append(path, "namespaces", ns)
			}
			object.JSON, err = json.Marshal(manifest)
			Expect(err).NotTo(HaveOccurred())
			refusal := dryRun(ctx, append(path, resource), object.JSON)
			result := checker.Check(ctx, object)
			Expect(words(result)).To(Equal(wordsOf(refusal)), "%s, document %d: %v", filepath.Base(object.File), object.Document, refusal)
			judged++
		}
		Expect(judged).To(BeNumerically(">", 20))
	})

	It("says of updates of upstream kinds what the cluster says", Serial, func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		mustKubectl(ctx, upstreamDefinition, "create", "-f", "-")
		DeferCleanup(func(ctx context.Context) { mustKubectl(ctx, "", "delete", "crd", "pytorchjobs.kubeflow.org") })
		stored := strings.NewReplacer("penstock.dev/v1alpha1", "kubeflow.org/v1", "TrainingJob", "PyTorchJob").Replace(alphaJob("live"))
		Eventually(func(g Gomega, ctx context.Context) {
			out, err := kubectl(ctx, strings.Replace(stored, "gpu: 8", "gpu: 9", 1), "create", "-n", ns, "--dry-run=server", "-f", "-")
			g.Expect(err).To(HaveOccurred(), out)
		}).WithContext(ctx).WithTimeout(servedWithin).Should(Succeed())
		mustKubectl(ctx, stored, "apply", "-n", ns, "-f", "-")
		policies, err := library.Policies()
		Expect(err).NotTo(HaveOccurred())
		read := func(text string) check.Object {
			objects, unreadable := check.Read("live.yaml", []byte(text))
			Expect(unreadable).To(BeEmpty())
			return objects[0]
		}
		for edit, admitted := range map[[2]string]bool{
			{"replicas: 2", "replicas: 3"}: true,
			{"train:1", "train:2"}:         true,
			{"gpu: 8", "gpu: 9"}:           false,
		} {
			checker, err := check.New(check.Options{Policies: policies, Namespace: ns, Now: time.Now()})
			Expect(err).NotTo(HaveOccurred())
			Expect(checker.Store(ctx, read(stored))).To(Succeed())
			edited := strings.Replace(stored, edit[0], edit[1], 1)
			out, err := kubectl(ctx, edited, "apply", "-n", ns, "--dry-run=server", "-f", "-")
			result := checker.Check(ctx, read(edited))
			Expect(err == nil).To(Equal(admitted), "%v: %s", edit, out)
			Expect(result.Allowed).To(Equal(admitted), "%v: %v", edit, result.Faults)
			for _, fault := range result.Faults {
				Expect(out).To(ContainSubstring(fault.String()))
			}
			// A TrainingJob that runs keeps what its pods are made of.
			Expect(len(result.Notes) > 0).To(Equal(admitted), "%v", edit)
		}
	})

	It("says of other kinds what the cluster says, given what it holds and who asks", Serial, func(ctx context.Context) {
		ns := newNamespace(ctx, map[string]string{"tier": "research"})
		mustKubectl(ctx, "{apiVersion: v1, kind: ConfigMap, metadata: {name: taken}}", "create", "-n", ns, "-f", "-")
		applyPolicy(ctx, worldlyPolicy, "worldly", "True Enforced")
		dir := GinkgoT().TempDir()
		written := func(name, text string) []string {
			file := filepath.Join(dir, name)
			Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
			return []string{file}
		}
		objects, unreadable := check.Load(written("policy.yaml", worldlyPolicy), false, nil)
		Expect(unreadable).To(BeEmpty())
		policies, _, err := check.Policies(ctx, objects, nil)
		Expect(err).NotTo(HaveOccurred())
		inventory, unreadable := check.LoadInventory(written("inventory.yaml", mustKubectl(ctx, "", "get", "configmaps,namespaces", "-A", "-o", "yaml")), false)
		Expect(unreadable).To(BeEmpty())
		self, err := clientset.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		checker, err := check.New(check.Options{Policies: policies, Inventory: inventory, Namespace: ns, User: self.Status.UserInfo, Now: time.Now()})
		Expect(err).NotTo(HaveOccurred())

		refused := 0
		for _, text := range []string{
			plainPod("free", "judge: 'yes'"),
			plainPod("taken", "judge: 'yes'"),
			plainPod("taken", "judge: 'yes', owner: '"+self.Status.UserInfo.Username+"'"),
			plainPod("taken", "a: b"), // no condition holds
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: taken, labels: {judge: 'yes'}}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: images.example/a:1}]}}}}",
		} {
			objects, unreadable := check.Read("object.yaml", []byte(text))
			Expect(unreadable).To(BeEmpty())
			path := []string{"/api", "v1", "namespaces", ns, "pods"}
			if strings.Contains(text, "Deployment") {
				path = []string{"/apis", "apps", "v1", "namespaces", ns, "deployments"}
			}
			result := checker.Check(ctx, objects[0])
			Expect(result.NotEvaluated).To(BeEmpty())
			Eventually(func(ctx context.Context) said { return wordsOf(dryRun(ctx, path, objects[0].JSON)) }).WithContext(ctx).
				Should(Equal(words(result)), text)
			if !result.Allowed {
				refused++
			}
		}
		Expect(refused).To(Equal(4))
	})
})

// worldlyPolicy depends on all that a check must be told of a cluster.
const worldlyPolicy = `apiVersion: penstock.dev/v1
kind: WorkloadPolicy
metadata: {name: worldly}
spec:
  match:
    resources:
    - {kinds: [Pod]}
    - {group: apps, kinds: [Deployment]}
    operations: [CREATE]
  matchConditions: [{name: labelled, expression: "has(object.metadata.labels) && 'judge' in object.metadata.labels"}]
  parameters: {level: low}
  overrides:
  - {namespaceSelector: {matchLabels: {tier: research}}, parameters: {level: high}}
  inventory:
  - {apiVersion: v1, kind: ConfigMap}
  rego: |
    package worldly

    violation contains {"msg": sprintf("is of level %s in %s", [input.parameters.level, input.namespace.labels.tier]), "field": "metadata.namespace"} if {
      not input.object.metadata.labels.owner
    }

    violation contains {"msg": sprintf("is owned by %s", [input.user.username]), "field": "metadata.labels.owner", "fix": "be somebody else"} if {
      input.object.metadata.labels.owner == input.user.username
    }

    violation contains {"msg": "has the name of a config map", "field": "metadata.name"} if {
      data.inventory.namespace[input.namespace.name].v1.ConfigMap[input.object.metadata.name]
    }
`

// dryRun creates an object as kubectl would, without storing it, and gives the
// Status of a refusal.
func dryRun(ctx context.Context, path []string, object []byte) *metav1.Status {
	GinkgoHelper()
	err := clientset.Discovery().RESTClient().Post().AbsPath(path...).
		SetHeader("Content-Type", "application/json").
		Param("dryRun", "All").Param("fieldValidation", "Strict").Param("fieldManager", "kubectl").
		Body(object).Do(ctx).Error()
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	Expect(errors.As(err, &status)).To(BeTrue(), "%v", err)
	refusal := status.Status()
	return &refusal
}

// said is what a refusal says, in an order of its own: the API server's is not
// always the same.
type said struct {
	reason metav1.StatusReason
	lines  []string
}

func words(result check.Result) said {
	found := said{reason: result.Reason}
	for _, fault := range result.Faults {
		if found.reason == metav1.StatusReasonBadRequest {
			fault.Field = ""
		}
		found.lines = append(found.lines, fault.Field+": "+fault.Message)
	}
	slices.Sort(found.lines)
	return found
}

// wordsOf splits the message of what could not be decoded: it has no causes.
func wordsOf(status *metav1.Status) said {
	if status == nil {
		return said{}
	}
	found := said{reason: status.Reason}
	if _, strict, ok := strings.Cut(status.Message, "strict decoding error: "); ok {
		for line := range strings.SplitSeq(strict, ", ") {
			found.lines = append(found.lines, ": "+line)
		}
	} else if status.Details != nil {
		for _, cause := range status.Details.Causes {
			if strings.Contains(cause.Message, "some validation rules were not checked") {
				continue // which says nothing of the object
			}
			found.lines = append(found.lines, cause.Field+": "+cause.Message)
		}
	}
	slices.Sort(found.lines)
	return found
}
