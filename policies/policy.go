package policies

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"sync/atomic"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// Policy is a compiled WorkloadPolicy. It is immutable and safe for concurrent use.
type Policy struct {
	name       string
	generation int64
	// digest is that of the spec, in hexadecimal.
	digest string
	spec   *v1.WorkloadPolicySpec

	matcher    matcher
	settings   *settings
	exceptions []v1.PolicyException
	// ignoreErrors is failurePolicy Ignore.
	ignoreErrors bool
	// entry is whom the API server asks for it by, conditions what it evaluates
	// before that.
	entry      Entry
	conditions []admissionregistrationv1.MatchCondition
	// upstream tells that the policy judges upstream kinds as well.
	upstream bool
	// inventory is what the rule reads of the objects of each kind in
	// spec.inventory, inventoryKinds those kinds in order.
	inventory      map[schema.GroupVersionKind]*fields
	inventoryKinds []schema.GroupVersionKind
	// namespaces is the last data.inventory.namespace made for the policy.
	namespaces *atomic.Pointer[namespacesTerm]
	// rule is nil when the policy did not compile.
	rule *rule
}

// Name returns the name of the WorkloadPolicy.
func (p *Policy) Name() string { return p.name }

// Generation returns the generation that the policy was compiled from.
func (p *Policy) Generation() int64 { return p.generation }

// Compile compiles a policy. The error, if any, is a *CompileError with
// everything that is wrong with it.
func Compile(policy *v1.WorkloadPolicy) (*Policy, error) {
	compiled, err := compile(policy)
	if err != nil {
		return nil, err
	}
	return compiled, nil
}

// compile is Compile, except that it returns what there is of a policy with
// faults: enough to match requests and to answer them by the failure policy.
func compile(policy *v1.WorkloadPolicy) (*Policy, *CompileError) {
	spec, path := &policy.Spec, field.NewPath("spec")
	p := &Policy{
		name:       policy.Name,
		generation: policy.Generation,
		digest:     specDigest(spec),
		spec:       spec,
		exceptions: spec.Exceptions,
		entry:      EntryOf(spec),
		conditions: spec.MatchConditions,
		upstream:   spec.UpstreamKinds == v1.UpstreamKindsJudge,
		namespaces: new(atomic.Pointer[namespacesTerm]),
	}
	var faults, more field.ErrorList
	p.matcher, faults = newMatcher(spec.Match, path.Child("match"))
	p.settings, more = newSettings(spec, path)
	faults = append(faults, more...)
	faults = append(faults, validateExceptions(spec.Exceptions, path.Child("exceptions"))...)
	switch spec.FailurePolicy {
	case "", v1.FailurePolicyFail:
	case v1.FailurePolicyIgnore:
		p.ignoreErrors = true
	default:
		faults = append(faults, field.NotSupported(path.Child("failurePolicy"), spec.FailurePolicy,
			[]v1.PolicyFailurePolicy{v1.FailurePolicyFail, v1.FailurePolicyIgnore}))
	}
	compiled, errs := compiledRules.compile(spec.Rego, spec.Libs)
	more = p.readInventory(spec.Inventory, compiled, path.Child("inventory"))
	faults = append(faults, more...)
	if len(faults) == 0 && len(errs) == 0 {
		p.rule = compiled
		return p, nil
	}
	return p, &CompileError{Policy: policy.Name, Spec: faults, Rego: errs}
}

// readInventory sets what the policy reads of the inventory. The rule is nil
// when it did not compile.
func (p *Policy) readInventory(named []v1.InventoryKind, compiled *rule, path *field.Path) field.ErrorList {
	p.inventory = map[schema.GroupVersionKind]*fields{}
	var faults field.ErrorList
	for i, one := range named {
		version, err := schema.ParseGroupVersion(one.APIVersion)
		if err != nil || one.APIVersion == "" || one.Kind == "" {
			faults = append(faults, field.Invalid(path.Index(i), one.APIVersion+" "+one.Kind, "needs an apiVersion such as apps/v1, and a kind"))
			continue
		}
		p.inventory[version.WithKind(one.Kind)] = &fields{}
	}
	p.inventoryKinds = slices.SortedFunc(maps.Keys(p.inventory), compareKinds)
	if compiled == nil || len(faults) > 0 {
		return faults
	}
	var unnamed []v1.InventoryKind
	for _, read := range compiled.inventory {
		found := false
		for kind, kept := range p.inventory {
			if read.of(kind) {
				kept.add(read.path, read.whole)
				found = true
			}
		}
		if one := (v1.InventoryKind{APIVersion: read.apiVersion, Kind: read.kind}); !found && !slices.Contains(unnamed, one) {
			unnamed = append(unnamed, one)
			faults = append(faults, field.Required(path, read.unnamed()))
		}
	}
	return faults
}

// specDigest identifies a spec: equal specs have equal digests.
func specDigest(spec *v1.WorkloadPolicySpec) string {
	// A spec is made of strings, times and JSON that was parsed before, so
	// that encoding it cannot fail; if it did, the digest would be that of
	// nothing and the policy be compiled anew each time.
	raw, _ := json.Marshal(spec)
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// withGeneration is the same policy as compiled from another generation.
func (p *Policy) withGeneration(generation int64) *Policy {
	renumbered := *p
	renumbered.generation = generation
	return &renumbered
}
