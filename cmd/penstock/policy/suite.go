package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/cmd/penstock/check"
	"github.com/penstock-dev/penstock/policies"
)

// Suite is a file of kind Suite of test.gatekeeper.sh/v1alpha1: constraints,
// and objects with what they must say to them.
type Suite struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Skip            bool              `json:"skip"`
	Tests           []SuiteTest       `json:"tests"`
}

// SuiteTest is one constraint. Paths are relative to the suite.
type SuiteTest struct {
	Name       string      `json:"name"`
	Template   string      `json:"template"`
	Constraint string      `json:"constraint"`
	Expansion  string      `json:"expansion"`
	Skip       bool        `json:"skip"`
	Cases      []SuiteCase `json:"cases"`
}

// SuiteCase is one object, or one AdmissionReview.
type SuiteCase struct {
	Name       string           `json:"name"`
	Object     string           `json:"object"`
	Inventory  []string         `json:"inventory"`
	Skip       bool             `json:"skip"`
	Assertions []SuiteAssertion `json:"assertions"`
}

// SuiteAssertion counts the violations whose messages match, all without a message.
type SuiteAssertion struct {
	// Violations is yes, no or a number; yes when left out.
	Violations any     `json:"violations"`
	Message    *string `json:"message"`
}

// suiteGroup begins the apiVersion of suites.
const suiteGroup = "test.gatekeeper.sh/"

// ReadSuite reads a suite; nil when the file is something else.
func ReadSuite(file string) (*Suite, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	// Manifests and samples lie beside suites.
	if !bytes.Contains(text, []byte(suiteGroup)) {
		return nil, nil
	}
	documents := check.Documents(text)
	isSuite := false
	for _, document := range documents {
		var head metav1.TypeMeta
		if err := yaml.Unmarshal(document.Text, &head); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		isSuite = isSuite || head.Kind == "Suite" && strings.HasPrefix(head.APIVersion, suiteGroup)
	}
	if !isSuite {
		return nil, nil
	}
	if len(documents) > 1 {
		return nil, fmt.Errorf("%s: line %d: a file of a suite is one document: put each into a file of its own", file, documents[1].Line)
	}
	var suite Suite
	if err := yaml.UnmarshalStrict(text, &suite); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &suite, nil
}

// runSuite runs the cases of a suite.
func (r *testRun) runSuite(ctx context.Context, file string) {
	suite, err := ReadSuite(file)
	if err != nil {
		r.fail(err)
		return
	}
	folder := filepath.Dir(file)
	for _, test := range suite.Tests {
		var policy *penstockv1.WorkloadPolicy
		var template *world
		var policyErr error
		if len(test.Cases) == 0 {
			r.fail(fmt.Errorf("%s: test %q has no cases: add one, or remove the test", file, test.Name))
		}
		for _, one := range test.Cases {
			name := test.Name + ": " + one.Name
			if !r.selects(file, name) {
				continue
			}
			began := time.Now()
			if suite.Skip || test.Skip || one.Skip {
				r.add(TestResult{Kind: "suite", File: file, Name: name, Outcome: Skipped})
				continue
			}
			if policy == nil && policyErr == nil {
				policy, policyErr = test.policy(folder)
				if policyErr == nil && r.options.Coverage {
					template = r.template(filepath.Join(folder, test.Template), policy)
				}
			}
			err := policyErr
			if err == nil {
				err = one.run(ctx, policy, template, folder, r.options.Timeout)
			}
			r.add(resultOf("suite", file, 0, name, began, problemsOf(err)))
		}
	}
}

// policy is that of a test.
func (t *SuiteTest) policy(folder string) (*penstockv1.WorkloadPolicy, error) {
	if t.Expansion != "" {
		return nil, errors.New("expansion templates are not supported: test the expanded objects")
	}
	var documents []Document
	for _, file := range []string{t.Template, t.Constraint} {
		objects, err := objectsIn(folder, file)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			documents = append(documents, Document{Place: file, JSON: object.JSON})
		}
	}
	imported := Import(documents, penstockv1.FailurePolicyFail)
	if err := errors.Join(imported.Errors...); err != nil {
		return nil, err
	}
	if len(imported.Policies) != 1 {
		return nil, fmt.Errorf("%s holds %d constraints, must be one", t.Constraint, len(imported.Policies))
	}
	return imported.Policies[0], nil
}

// objectsIn reads a file below a folder.
func objectsIn(folder, file string) ([]check.Object, error) {
	if file == "" || filepath.IsAbs(file) {
		return nil, fmt.Errorf("path %q must be relative to the suite", file)
	}
	objects, unreadable := check.Load([]string{filepath.Join(folder, file)}, false, nil)
	if len(unreadable) > 0 {
		return nil, unreadable[0]
	}
	return objects, nil
}

// template is the world of the template in a file, whose Rego a policy has; tests
// of one template are counted together.
func (r *testRun) template(file string, policy *penstockv1.WorkloadPolicy) *world {
	rego, libs := policy.Spec.Rego, policy.Spec.Libs
	name, source := sourceOfTemplate(file)
	at := slices.IndexFunc(r.templates, func(w *world) bool { return w.source.File == file && w.name == name })
	if at >= 0 {
		return r.templates[at]
	}
	made := &world{
		name: name, source: &source, policies: []string{name},
		parse: func() (*policies.Modules, []policies.RegoFault) { return policies.Parse(rego, libs...) },
	}
	made.measure()
	r.templates = append(r.templates, made)
	return made
}

func (c *SuiteCase) run(ctx context.Context, policy *penstockv1.WorkloadPolicy, template *world, folder string, timeout time.Duration) error {
	objects, err := objectsIn(folder, c.Object)
	if err != nil {
		return err
	}
	if len(objects) != 1 {
		return fmt.Errorf("%s holds %d objects, must be one", c.Object, len(objects))
	}
	inventory, err := c.inventory(folder)
	if err != nil {
		return err
	}
	request, err := requestOf(objects[0].JSON, inventory)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Object, err)
	}
	askConditions(ctx, &request)
	// A suite says what matches by its objects: all operations are judged.
	policy = policy.DeepCopy()
	policy.Spec.Match.Operations = []penstockv1.PolicyOperation{request.Operation}
	engine, err := c.engine(policy, template, inventory, timeout)
	if err != nil {
		return err
	}
	verdict := engine.Snapshot().Judge(ctx, request)
	if len(verdict.Errors) > 0 {
		return errors.New(verdict.Errors[0].String())
	}
	if len(verdict.NotEvaluated) > 0 {
		return fmt.Errorf("the policy was not evaluated for want of %s", verdict.NotEvaluated[0].Missing)
	}
	assertions := c.Assertions
	if len(assertions) == 0 {
		return errors.New("there is no assertion")
	}
	for _, one := range assertions {
		if err := one.hold(verdict.Violations); err != nil {
			return err
		}
	}
	return nil
}

// storedObject is one of a case's inventory.
type storedObject struct {
	file string
	raw  []byte
}

func (c *SuiteCase) inventory(folder string) ([]storedObject, error) {
	var all []storedObject
	for _, file := range c.Inventory {
		stored, err := objectsIn(folder, file)
		if err != nil {
			return nil, err
		}
		for _, object := range stored {
			all = append(all, storedObject{file, object.JSON})
		}
	}
	return all, nil
}

// engine has the policy, and the case's inventory.
func (c *SuiteCase) engine(policy *penstockv1.WorkloadPolicy, template *world, inventory []storedObject, timeout time.Duration) (*policies.Engine, error) {
	options := policies.Options{Deadline: timeout}
	if template != nil {
		options.Tracer = template.coverage
	}
	engine := policies.NewEngine(options)
	if err := engine.Set(policy); err != nil {
		return nil, err
	}
	for _, object := range inventory {
		if err := engine.Inventory().SetJSON(object.raw); err != nil {
			return nil, fmt.Errorf("%s: %w", object.file, err)
		}
	}
	for _, need := range engine.Inventory().Needs() {
		engine.Inventory().Synced(need.Kind)
	}
	return engine, nil
}

func (a *SuiteAssertion) hold(violations []policies.Violation) error {
	matching := len(violations)
	if a.Message != nil {
		message, err := regexp.Compile(*a.Message)
		if err != nil {
			return fmt.Errorf("assertion: message: %w", err)
		}
		matching = 0
		for _, violation := range violations {
			if message.MatchString(violation.Message) {
				matching++
			}
		}
	}
	holds, want := false, fmt.Sprint(a.Violations)
	switch wanted := a.Violations.(type) {
	case nil:
		holds, want = matching > 0, "yes"
	case bool:
		// YAML takes yes and no for true and false.
		holds, want = wanted == (matching > 0), map[bool]string{true: "yes", false: "no"}[wanted]
	case string:
		holds = wanted == "yes" && matching > 0 || wanted == "no" && matching == 0
	case float64:
		holds = wanted == float64(matching)
	}
	if holds {
		return nil
	}
	var said []string
	for _, violation := range violations {
		said = append(said, violation.Message)
	}
	return fmt.Errorf("%d violations match, want %s; there are: %q", matching, want, said)
}

// requestOf is the request that an object, or an AdmissionReview, stands for.
func requestOf(raw []byte, inventory []storedObject) (policies.Request, error) {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &object); err != nil {
		return policies.Request{}, err
	}
	if object.Kind == "AdmissionReview" {
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(raw, &review); err != nil {
			return policies.Request{}, err
		}
		return requestOfReview(review.Request, inventory)
	}
	gvk := schema.FromAPIVersionAndKind(object.APIVersion, object.Kind)
	return policies.Request{
		Kind:            metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind},
		Namespace:       object.Namespace,
		Name:            object.Name,
		Operation:       penstockv1.OperationCreate,
		UserKnown:       true,
		NamespaceLabels: labelsIn(inventory, object.Namespace),
		Object:          raw,
		Now:             time.Now(),
	}, nil
}

// requestOfReview completes a review as far as the API server would.
func requestOfReview(review *admissionv1.AdmissionRequest, inventory []storedObject) (policies.Request, error) {
	if review == nil {
		return policies.Request{}, errors.New("the AdmissionReview has no request")
	}
	switch {
	case review.Operation == admissionv1.Delete && len(review.OldObject.Raw) == 0:
		return policies.Request{}, errors.New("the AdmissionReview of a deletion needs request.oldObject")
	case review.Operation != admissionv1.Delete && len(review.Object.Raw) == 0:
		return policies.Request{}, errors.New("the AdmissionReview needs request.object")
	}
	var object metav1.PartialObjectMetadata
	raw := review.Object.Raw
	if len(raw) == 0 {
		raw = review.OldObject.Raw
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return policies.Request{}, err
	}
	if review.Kind.Kind == "" {
		gvk := schema.FromAPIVersionAndKind(object.APIVersion, object.Kind)
		review.Kind = metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
	}
	if review.Namespace == "" {
		review.Namespace = object.Namespace
	}
	if review.Name == "" {
		review.Name = object.Name
	}
	return policies.FromAdmission(review, time.Now(), labelsIn(inventory, review.Namespace)), nil
}

// labelsIn gives the labels of a namespace by the Namespaces of an inventory. Without
// one no more than its name is known.
func labelsIn(inventory []storedObject, name string) func() (map[string]string, error) {
	return func() (map[string]string, error) {
		for _, one := range inventory {
			var object metav1.PartialObjectMetadata
			if json.Unmarshal(one.raw, &object) != nil || object.APIVersion != "v1" || object.Kind != "Namespace" || object.Name != name {
				continue
			}
			labels := map[string]string{corev1.LabelMetadataName: name}
			maps.Copy(labels, object.Labels)
			return labels, nil
		}
		return nil, fmt.Errorf("the inventory of the case has no Namespace %s: add it", name)
	}
}
