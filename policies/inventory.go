package policies

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Inventory holds objects of the cluster as Rego values, for rules to read as
// data.inventory:
//
//	data.inventory.cluster[apiVersion][kind][name]
//	data.inventory.namespace[namespace][apiVersion][kind][name]
//
// Whoever watches the cluster asks Needs, gives the objects of those kinds to
// Replace, or to Set one by one and then Synced, and each change to Set and
// Delete. It may be used concurrently. A request sees one state from beginning
// to end; a change costs the same however many objects there are.
//
// An object is turned into a Rego value when it is set, without managedFields
// and without the values of Secrets, and no more of it than the policies in
// force read, as far as their Rego tells.
type Inventory struct {
	// mu serialises changes; requests never take it.
	mu        sync.Mutex
	projector *projector
	wanted    map[schema.GroupVersionKind]*fields
	readers   map[schema.GroupVersionKind][]string
	// changes counts those of all kinds.
	changes uint64

	state atomic.Pointer[inventoryState]
}

// InventoryNeed is a kind that policies in force read.
type InventoryNeed struct {
	Kind schema.GroupVersionKind
	// Policies are the names of the policies that name the kind.
	Policies []string
	// Stale tells that the kind has yet to be synced or, after a change of
	// policies, that more of its objects is read than was kept of them: give
	// them to Replace.
	Stale bool
}

// inventoryState is the objects at one moment. It never changes.
type inventoryState struct {
	kinds map[schema.GroupVersionKind]*kindState
	// lacks say why there is nothing of a kind, where that is known.
	lacks map[schema.GroupVersionKind]string
}

// kindState is the objects of one kind. It never changes.
type kindState struct {
	kind   schema.GroupVersionKind
	synced bool
	// kept is what each object holds at least.
	kept       *fields
	cluster    *leaf
	namespaces ordered[*leaf]
	count      int
	// version is another after each change.
	version uint64
}

// leaf is the objects of one kind in one namespace, or without one.
type leaf struct {
	objects ordered[*ast.Term]

	once sync.Once
	made *ast.Term
}

// term is the objects by name; made when first asked for, since rules that
// look up a name have no need of it.
func (l *leaf) term() *ast.Term {
	l.once.Do(func() {
		pairs := make([][2]*ast.Term, 0, l.objects.len)
		for name, object := range l.objects.all() {
			pairs = append(pairs, [2]*ast.Term{ast.StringTerm(name), object})
		}
		l.made = ast.NewTerm(ast.NewObject(pairs...))
	})
	return l.made
}

func newInventory() *Inventory {
	i := &Inventory{projector: newProjector()}
	i.state.Store(&inventoryState{})
	return i
}

// want notes what the policies in force read.
func (i *Inventory) want(inForce []*Policy) {
	wanted, readers := map[schema.GroupVersionKind]*fields{}, map[schema.GroupVersionKind][]string{}
	for _, policy := range inForce {
		for kind, needed := range policy.inventory {
			if wanted[kind] == nil {
				wanted[kind] = &fields{}
			}
			wanted[kind].merge(needed)
			readers[kind] = append(readers[kind], policy.name)
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wanted, i.readers = wanted, readers
}

// Needs returns the kinds that policies in force read, in order.
func (i *Inventory) Needs() []InventoryNeed {
	i.mu.Lock()
	defer i.mu.Unlock()
	state := i.state.Load()
	needs := make([]InventoryNeed, 0, len(i.wanted))
	for kind, wanted := range i.wanted {
		known := state.kinds[kind]
		needs = append(needs, InventoryNeed{
			Kind:     kind,
			Policies: slices.Clone(i.readers[kind]),
			Stale:    known == nil || !known.synced || !known.kept.covers(wanted),
		})
	}
	slices.SortFunc(needs, func(a, b InventoryNeed) int { return compareKinds(a.Kind, b.Kind) })
	return needs
}

// Replace makes objects all there are of a kind, and the kind synced, in one
// step. Each object is the content of an unstructured one. On an error nothing
// changes.
func (i *Inventory) Replace(kind schema.GroupVersionKind, objects []map[string]any) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	next := &kindState{kind: kind, synced: true, kept: i.keep(kind)}
	byNamespace := map[string][]orderedEntry[*ast.Term]{}
	for _, object := range objects {
		namespace, name, term, err := i.convert(next, object)
		if err != nil {
			return err
		}
		byNamespace[namespace] = append(byNamespace[namespace], orderedEntry[*ast.Term]{name, term})
	}
	for namespace, entries := range byNamespace {
		var objects ordered[*ast.Term]
		slices.SortFunc(entries, func(a, b orderedEntry[*ast.Term]) int { return a.compare(b.key) })
		for _, entry := range entries {
			objects = objects.set(entry.key, entry.value)
		}
		next.put(namespace, objects)
	}
	i.publish(next)
	return nil
}

// Set adds or changes an object, the content of an unstructured one.
func (i *Inventory) Set(kind schema.GroupVersionKind, object map[string]any) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	next := i.next(kind)
	namespace, name, term, err := i.convert(next, object)
	if err != nil {
		return err
	}
	objects := next.leafOf(namespace)
	if known, ok := objects.get(name); ok && known.Value.Compare(term.Value) == 0 {
		// Nothing that rules read of it changed.
		return nil
	}
	next.put(namespace, objects.set(name, term))
	i.publish(next)
	return nil
}

// SetJSON is Set for an object in JSON, which says of what kind it is.
func (i *Inventory) SetJSON(raw []byte) error {
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		return fmt.Errorf("failed to parse the object: %w", err)
	}
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	if apiVersion == "" || kind == "" {
		return errors.New("an object of the inventory needs apiVersion and kind")
	}
	return i.Set(schema.FromAPIVersionAndKind(apiVersion, kind), object)
}

// Delete removes an object if it is there. namespace is empty for cluster-scoped objects.
func (i *Inventory) Delete(kind schema.GroupVersionKind, namespace, name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.state.Load().kinds[kind] == nil {
		return
	}
	next := i.next(kind)
	next.put(namespace, next.leafOf(namespace).remove(name))
	i.publish(next)
}

// Synced says that all objects of a kind have been set: policies that read it
// are evaluated from now on.
func (i *Inventory) Synced(kind schema.GroupVersionKind) {
	i.mu.Lock()
	defer i.mu.Unlock()
	next := i.next(kind)
	next.synced = true
	i.publish(next)
}

// Forget drops a kind, with its objects; policies that read it answer by their
// failure policy until it is synced again.
func (i *Inventory) Forget(kind schema.GroupVersionKind) {
	i.mu.Lock()
	defer i.mu.Unlock()
	state := i.state.Load()
	kinds := maps.Clone(state.kinds)
	delete(kinds, kind)
	i.state.Store(&inventoryState{kinds: kinds, lacks: state.lacks})
}

// Lack says why there is nothing of a kind, with what to do about it, for the
// errors of policies that read it; empty that it is not known. It holds until
// something of the kind is set.
func (i *Inventory) Lack(kind schema.GroupVersionKind, why string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	state := i.state.Load()
	if state.lacks[kind] == why {
		return
	}
	lacks := map[schema.GroupVersionKind]string{}
	maps.Copy(lacks, state.lacks)
	if lacks[kind] = why; why == "" {
		delete(lacks, kind)
	}
	i.state.Store(&inventoryState{kinds: state.kinds, lacks: lacks})
}

// Count returns the number of objects of a kind.
func (i *Inventory) Count(kind schema.GroupVersionKind) int {
	if known := i.state.Load().kinds[kind]; known != nil {
		return known.count
	}
	return 0
}

// Version returns a number that is another one after each change of what the
// policies can read of a kind, 0 while there is nothing.
func (i *Inventory) Version(kind schema.GroupVersionKind) uint64 {
	if known := i.state.Load().kinds[kind]; known != nil {
		return known.version
	}
	return 0
}

// keep returns what to keep of the objects of a kind: all of it as long as no
// policy says what it reads.
func (i *Inventory) keep(kind schema.GroupVersionKind) *fields {
	kept := &fields{}
	if wanted, ok := i.wanted[kind]; ok {
		kept.merge(wanted)
		return kept
	}
	return wholeObject()
}

// next returns a copy of a kind's state to change.
func (i *Inventory) next(kind schema.GroupVersionKind) *kindState {
	if known := i.state.Load().kinds[kind]; known != nil {
		next := *known
		return &next
	}
	return &kindState{kind: kind, kept: i.keep(kind)}
}

func (i *Inventory) publish(next *kindState) {
	state := i.state.Load()
	kinds, lacks := maps.Clone(state.kinds), state.lacks
	if kinds == nil {
		kinds = map[schema.GroupVersionKind]*kindState{}
	}
	if lacks[next.kind] != "" {
		lacks = maps.Clone(lacks)
		delete(lacks, next.kind)
	}
	i.changes++
	next.version = i.changes
	kinds[next.kind] = next
	i.state.Store(&inventoryState{kinds: kinds, lacks: lacks})
}

// convert makes the Rego value of an object.
func (i *Inventory) convert(of *kindState, object map[string]any) (namespace, name string, term *ast.Term, err error) {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ = metadata["name"].(string)
	namespace, _ = metadata["namespace"].(string)
	if name == "" {
		return "", "", nil, fmt.Errorf("an object of kind %s has no metadata.name", of.kind.Kind)
	}
	bare := maps.Clone(object)
	if _, ok := metadata["managedFields"]; ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		bare["metadata"] = metadata
	}
	if secretKind(of.kind.Group, of.kind.Kind) {
		bare = secretNames(bare)
	}
	// Lists leave them out of their items.
	bare["apiVersion"], bare["kind"] = of.kind.ToAPIVersionAndKind()
	term, err = i.projector.object(bare, of.kept)
	if err != nil {
		return "", "", nil, fmt.Errorf("failed to read %s %s: %w", of.kind.Kind, name, err)
	}
	return namespace, name, term, nil
}

// secretNames is a Secret with the names of its keys and none of their values.
func secretNames(secret map[string]any) map[string]any {
	blank := func(of map[string]any, member string) {
		from, ok := of[member].(map[string]any)
		if !ok {
			delete(of, member)
			return
		}
		names := make(map[string]any, len(from))
		for name := range from {
			names[name] = ""
		}
		of[member] = names
	}
	blank(secret, "data")
	blank(secret, "stringData")
	metadata, _ := secret["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	// kubectl apply keeps the whole object in an annotation.
	blank(metadata, "annotations")
	secret["metadata"] = metadata
	return secret
}

// leafOf returns the objects in a namespace.
func (k *kindState) leafOf(namespace string) ordered[*ast.Term] {
	found := k.cluster
	if namespace != "" {
		found, _ = k.namespaces.get(namespace)
	}
	if found == nil {
		return ordered[*ast.Term]{}
	}
	return found.objects
}

// put changes the objects in a namespace.
func (k *kindState) put(namespace string, objects ordered[*ast.Term]) {
	k.count += objects.len - k.leafOf(namespace).len
	var changed *leaf
	if objects.len > 0 {
		changed = &leaf{objects: objects}
	}
	switch {
	case namespace == "":
		k.cluster = changed
	case changed == nil:
		k.namespaces = k.namespaces.remove(namespace)
	default:
		k.namespaces = k.namespaces.set(namespace, changed)
	}
}
