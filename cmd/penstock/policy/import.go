package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
)

// A Document is an object in JSON, and where it was read.
type Document struct {
	Place string
	JSON  []byte
}

// Imported is what an import makes.
type Imported struct {
	Policies []*penstockv1.WorkloadPolicy
	// Warnings say what is not quite as it was. Errors say what was not
	// imported; each names the file.
	Warnings []string
	Errors   []error
}

// Import turns ConstraintTemplates and their constraints into WorkloadPolicies
// that do not decide otherwise, in the order of the constraints. What a
// SyncSet or Config keeps in the inventory narrows what a template asks for.
func Import(documents []Document, failurePolicy penstockv1.PolicyFailurePolicy) *Imported {
	i := &importer{templates: map[string]*template{}, names: map[string]bool{}}
	for _, document := range documents {
		i.sort(document)
	}
	for _, document := range i.constraints {
		policy, err := i.constraint(document.JSON)
		if err != nil {
			i.out.Errors = append(i.out.Errors, fmt.Errorf("%s: %w", document.Place, err))
			continue
		}
		policy.Spec.FailurePolicy = failurePolicy
		if _, err := policies.Compile(policy); err != nil {
			i.out.Errors = append(i.out.Errors, fmt.Errorf("%s: policy %s does not compile:\n%w", document.Place, policy.Name, err))
			continue
		}
		i.out.Policies = append(i.out.Policies, policy)
	}
	for _, one := range i.order {
		if !one.used {
			i.warn("template %s has no constraint, and so makes no policy", one.name)
		}
	}
	if len(i.constraints)+len(i.order) == 0 && len(i.out.Errors) == 0 {
		i.out.Errors = append(i.out.Errors, errors.New("there is no ConstraintTemplate and no constraint"))
	}
	return &i.out
}

type importer struct {
	templates   map[string]*template
	order       []*template
	constraints []Document
	// kept are the kinds that SyncSets and Configs name.
	kept  []penstockv1.InventoryKind
	names map[string]bool
	out   Imported
}

func (i *importer) warn(format string, args ...any) {
	i.out.Warnings = append(i.out.Warnings, fmt.Sprintf(format, args...))
}

// sort puts a document where it belongs.
func (i *importer) sort(document Document) {
	var object struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Spec       struct {
			GVKs []syncKind `json:"gvks"`
			Sync struct {
				SyncOnly []syncKind `json:"syncOnly"`
			} `json:"sync"`
		} `json:"spec"`
	}
	fail := func(err error) { i.out.Errors = append(i.out.Errors, fmt.Errorf("%s: %w", document.Place, err)) }
	if err := json.Unmarshal(document.JSON, &object); err != nil {
		// Of other kinds, spec may be anything.
		object.Spec.GVKs = nil
	}
	switch group := schema.FromAPIVersionAndKind(object.APIVersion, object.Kind).Group; {
	case group == "templates.gatekeeper.sh" && object.Kind == "ConstraintTemplate":
		one, err := readTemplate(document.JSON)
		if err != nil {
			fail(err)
			return
		}
		if i.templates[one.kind] != nil {
			fail(fmt.Errorf("template %s is of kind %s, as template %s is", one.name, one.kind, i.templates[one.kind].name))
			return
		}
		if one.schemaFault != nil {
			i.warn("template %s: no API server takes the schema in spec.crd.spec.validation, and the defaults in it are left out: %v", one.name, one.schemaFault)
		}
		i.templates[one.kind] = one
		i.order = append(i.order, one)
	case group == "constraints.gatekeeper.sh":
		i.constraints = append(i.constraints, document)
	case group == "syncset.gatekeeper.sh" && object.Kind == "SyncSet", group == "config.gatekeeper.sh" && object.Kind == "Config":
		for _, one := range append(object.Spec.GVKs, object.Spec.Sync.SyncOnly...) {
			i.kept = append(i.kept, inventoryKind(one.Group, one.Version, one.Kind))
		}
		if object.Kind == "Config" {
			i.warn("%s: of Config, the kinds to sync are imported and nothing else", document.Place)
		}
	default:
		i.warn("%s: %s %s is left out", document.Place, object.APIVersion, object.Kind)
	}
}

type syncKind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

func (i *importer) constraint(raw []byte) (*penstockv1.WorkloadPolicy, error) {
	c, err := readConstraint(raw)
	if err != nil {
		return nil, err
	}
	t := i.templates[c.Kind]
	if t == nil {
		return nil, fmt.Errorf("constraint %s has no template: add the ConstraintTemplate of kind %s", c.Metadata.Name, c.Kind)
	}
	t.used = true
	policy, dropped, err := c.policy(t)
	if err != nil {
		return nil, fmt.Errorf("constraint %s: %w", c.Metadata.Name, err)
	}
	if i.names[policy.Name] {
		policy.Name = strings.ToLower(c.Kind) + "-" + policy.Name
		i.warn("constraint %s of kind %s becomes policy %s: another has its name", c.Metadata.Name, c.Kind, policy.Name)
	}
	if i.names[policy.Name] {
		return nil, fmt.Errorf("constraint %s is there twice", c.Metadata.Name)
	}
	i.names[policy.Name] = true
	for _, path := range dropped {
		i.warn("policy %s: %s is null, which no policy may hold, and is left out: a rule finds nothing where it found null", policy.Name, path)
	}
	policy.Spec.Inventory = i.inventory(t, policy.Name)
	if len(policy.Spec.MatchConditions) > 0 {
		i.warn("policy %s: scope and name became matchConditions, which the API server evaluates before it asks", policy.Name)
	}
	if at := sparesUpdates.FindString(t.rego + strings.Join(t.libs, "\n")); at != "" && byUpdatesAlone(&policy.Spec.Match) {
		i.warn("policy %s: the rule says nothing of updates (%s), by which alone ephemeral containers and resizes come: what it refuses then passes, as it does in Gatekeeper; "+
			"leave that out of the rule to judge them, which lets updates leave faults that were there before", policy.Name, at)
	}
	return policy, nil
}

// sparesUpdates is how rules leave updates alone.
var sparesUpdates = regexp.MustCompile(`not\s+[\w.]*is_update\([^)]*\)|\.operation\s*==\s*"CREATE"|\.operation\s*!=\s*"UPDATE"`)

// byUpdatesAlone reports whether a policy names subresources that nothing but
// updates are made of.
func byUpdatesAlone(match *penstockv1.PolicyMatch) bool {
	return slices.ContainsFunc(match.Resources, func(one penstockv1.PolicyResources) bool {
		return slices.Contains(one.Subresources, "ephemeralcontainers")
	})
}

// inventory are the kinds that a policy of a template reads: of those that the
// template asks for, the ones that are kept, if that is known.
func (i *importer) inventory(t *template, policy string) []penstockv1.InventoryKind {
	var kinds []penstockv1.InventoryKind
	for _, alternatives := range t.inventory {
		chosen := slices.DeleteFunc(slices.Clone(alternatives), func(one penstockv1.InventoryKind) bool { return !slices.Contains(i.kept, one) })
		if len(chosen) == 0 {
			chosen = alternatives
			if len(alternatives) > 1 {
				i.warn("policy %s: the template is content with one of several kinds in the inventory: remove from spec.inventory what the cluster does not serve, or import the SyncSet as well", policy)
			}
		}
		kinds = append(kinds, chosen...)
	}
	if len(t.inventory) == 0 && strings.Contains(t.rego+strings.Join(t.libs, ""), "data.inventory") {
		if kinds = i.kept; len(kinds) == 0 {
			i.warn("policy %s: the template reads data.inventory and does not say of which kinds: import the SyncSet or Config as well, annotate the template with metadata.gatekeeper.sh/requires-sync-data, or add the kinds to spec.inventory", policy)
		}
	}
	var unique []penstockv1.InventoryKind
	for _, one := range kinds {
		if !slices.Contains(unique, one) {
			unique = append(unique, one)
		}
	}
	return unique
}

// WriteYAML writes the policies as documents of one file.
func (i *Imported) WriteYAML(w io.Writer) error {
	for n, policy := range i.Policies {
		text, err := yaml.Marshal(policy)
		if err != nil {
			return fmt.Errorf("failed to write policy %s: %w", policy.Name, err)
		}
		if n > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := w.Write(text); err != nil {
			return fmt.Errorf("failed to write policy %s: %w", policy.Name, err)
		}
	}
	return nil
}
