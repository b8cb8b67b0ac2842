package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
)

// LoadInventory reads objects of the cluster for Options.Inventory. A list of
// one kind without items, such as a NodeList, says that the cluster has none.
func LoadInventory(paths []string, recursive bool) ([]Object, []*Unreadable) {
	objects, unreadable := load(paths, recursive, nil, true)
	if objects == nil {
		objects = []Object{} // an inventory that was given
	}
	return objects, unreadable
}

// namespaces gives the labels of all namespaces that are known: those of the
// inventory are.
func (o *Options) namespaces() map[string]map[string]string {
	known := map[string]map[string]string{}
	for _, object := range o.Inventory {
		var namespace corev1.Namespace
		if json.Unmarshal(object.JSON, &namespace) == nil && namespace.APIVersion == "v1" && namespace.Kind == "Namespace" {
			known[namespace.Name] = labelled(namespace.Name, namespace.Labels)
		}
	}
	maps.Copy(known, o.Namespaces)
	return known
}

// takeInventory gives the engine the objects that policies read.
func (c *Checker) takeInventory() error {
	found, err := c.inventory()
	if err != nil {
		return err
	}
	c.unknown = map[string][]schema.GroupVersionKind{}
	own := c.own.Engine.Inventory()
	for _, need := range own.Needs() {
		objects, given := found[need.Kind]
		if !given {
			for _, policy := range need.Policies {
				c.unknown[policy] = append(c.unknown[policy], need.Kind)
			}
			continue
		}
		if err := own.Replace(need.Kind, objects); err != nil {
			return err
		}
	}
	return nil
}

// inventory gives the objects by kind; a kind that is known to have none has an
// empty list.
func (c *Checker) inventory() (map[schema.GroupVersionKind][]map[string]any, error) {
	found := map[schema.GroupVersionKind][]map[string]any{}
	for _, object := range c.options.Inventory {
		kind, content, err := c.inventoryObject(object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place(object.File, object.Document, object.Items), err)
		}
		if content == nil {
			if _, known := found[kind]; !known {
				found[kind] = nil
			}
			continue
		}
		found[kind] = append(found[kind], content)
	}
	return found, nil
}

// inventoryObject gives an object as the inventory holds it, nil for a list
// without items. Penstock's own kinds are stored in v1, with their defaults.
func (c *Checker) inventoryObject(object Object) (schema.GroupVersionKind, map[string]any, error) {
	content, err := exactly(object.JSON)
	if err != nil {
		return schema.GroupVersionKind{}, nil, err
	}
	manifest := unstructured.Unstructured{Object: content}
	kind := manifest.GroupVersionKind()
	if object.empty {
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
		return kind, nil, nil
	}
	if manifest.GetName() == "" {
		return kind, nil, errors.New("an object of the inventory needs metadata.name")
	}
	// A kind that is not known here may live in no namespace.
	namespace := manifest.GetNamespace()
	if clientgoscheme.Scheme.Recognizes(kind) {
		namespace = c.foreignNamespace(manifest)
	}
	if kind.Group == penstockv1.GroupName {
		raw, err := c.Normal(kind, object.JSON)
		if err != nil {
			return kind, nil, err
		}
		if manifest.Object, err = exactly(raw); err != nil {
			return kind, nil, err
		}
		kind.Version = penstockv1.GroupVersion.Version
		namespace = c.NamespaceOf(kind, manifest.GetNamespace())
	}
	if namespace != "" {
		manifest.SetNamespace(namespace)
	}
	return kind, manifest.Object, nil
}

// exactly reads an object with its numbers as they are written.
func exactly(raw []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var content map[string]any
	if err := decoder.Decode(&content); err != nil {
		return nil, fmt.Errorf("failed to read the object: %w", err)
	}
	return content, nil
}

// lacksInventory says which kinds a policy would have to know.
func (c *Checker) lacksInventory(policy string) string {
	var kinds []string
	for _, kind := range c.unknown[policy] {
		kinds = append(kinds, fmt.Sprintf("%s (%s)", kind.Kind, kind.GroupVersion()))
	}
	reads := "it reads objects of kind " + strings.Join(kinds, " and ")
	if c.options.Inventory == nil {
		return reads + ", which are not known: give --inventory"
	}
	return reads + ", of which --inventory has none: add them, or an empty list such as NodeList where there are none"
}
