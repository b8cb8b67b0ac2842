package audit

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// objectKey identifies an object: its UID, in a third of the space.
type objectKey [16]byte

func keyOf(uid types.UID) (key objectKey) {
	// UIDs are UUIDs, but for those of some aggregated API servers.
	if n, err := hex.Decode(key[:], []byte(strings.ReplaceAll(string(uid), "-", ""))); err == nil && n == len(key) && len(uid) == 36 {
		return key
	}
	sum := sha256.Sum256([]byte(uid))
	copy(key[:], sum[:])
	return key
}

// A signature is how an object stands with all policies that judge it. Few
// differ among the objects of a cluster, so each is held once, with the number of
// its objects.
type signature struct {
	standings []policyStanding
	objects   int
}

type policyStanding struct {
	policy   string
	standing standing
}

func (s *signature) key() string {
	var text strings.Builder
	for _, one := range s.standings {
		text.WriteString(one.policy + "=" + string(one.standing) + " ")
	}
	return text.String()
}

// An entry is what is known of every object that some policy judges.
type entry struct {
	signature *signature
	// content is the hash of what was judged by all policies; 0 if they judged
	// at different times.
	content uint64
}

// results are the results of an audit. Objects that no policy judges take no
// space, those that pass some 50 bytes. It is for one goroutine at a time.
type results struct {
	entries    map[schema.GroupVersionKind]map[objectKey]entry
	found      map[objectKey]*auditedObject
	signatures map[string]*signature
}

func newResults() *results {
	return &results{
		entries:    map[schema.GroupVersionKind]map[objectKey]entry{},
		found:      map[objectKey]*auditedObject{},
		signatures: map[string]*signature{},
	}
}

// content is the hash of an object's content as of when all policies judged it
// last, 0 if it is to be judged.
func (r *results) content(kind schema.GroupVersionKind, key objectKey) uint64 {
	return r.entries[kind][key].content
}

// set notes what policies say of an object: all of them, or those of only. It
// returns the names of the policies that say something else than before, and
// whether they give another account of the object.
func (r *results) set(object auditedObject, content uint64, only map[string]bool) (changed []string, news bool) {
	key := keyOf(object.uid)
	old, was := r.entries[object.kind][key], r.found[key]
	next := &signature{}
	var results []policyResult
	if only != nil {
		content = old.content
		if old.signature != nil {
			next.standings = slices.DeleteFunc(slices.Clone(old.signature.standings), func(one policyStanding) bool { return only[one.policy] })
		}
		if was != nil {
			results = slices.DeleteFunc(slices.Clone(was.results), func(one policyResult) bool { return only[one.policy] })
		}
	}
	for _, one := range object.results {
		next.standings = append(next.standings, policyStanding{one.policy, one.standing})
		if one.standing == standingPasses || strings.HasPrefix(string(one.standing), string(standingLacks)) {
			continue
		}
		if before := was.of(one.policy); before != nil && before.standing == standingFailed && one.standing == standingFailed {
			// It was evaluated again already.
			one.due = time.Time{}
		}
		results = append(results, one)
	}
	slices.SortFunc(next.standings, func(a, b policyStanding) int { return cmp.Compare(a.policy, b.policy) })
	slices.SortFunc(results, func(a, b policyResult) int { return cmp.Compare(a.policy, b.policy) })
	object.results = results
	changed = differing(old.signature, next)
	for _, policy := range accountsDiffer(was, &object) {
		news = true
		if !slices.Contains(changed, policy) {
			changed = append(changed, policy)
		}
	}
	r.put(object.kind, key, old.signature, next, content)
	if len(results) == 0 {
		delete(r.found, key)
	} else {
		r.found[key] = &object
	}
	return changed, news
}

// put makes a signature that of an object.
func (r *results) put(kind schema.GroupVersionKind, key objectKey, old, next *signature, content uint64) {
	if len(next.standings) == 0 {
		r.release(old)
		delete(r.entries[kind], key)
		return
	}
	name := next.key()
	if known := r.signatures[name]; known != nil {
		next = known
	} else {
		r.signatures[name] = next
	}
	next.objects++
	r.release(old)
	if r.entries[kind] == nil {
		r.entries[kind] = map[objectKey]entry{}
	}
	r.entries[kind][key] = entry{next, content}
}

func (r *results) release(s *signature) {
	if s == nil {
		return
	}
	if s.objects--; s.objects == 0 {
		delete(r.signatures, s.key())
	}
}

// differing lists the policies that two signatures differ in.
func differing(a, b *signature) []string {
	var changed []string
	standings := map[string]standing{}
	if a != nil {
		for _, one := range a.standings {
			standings[one.policy] = one.standing
		}
	}
	for _, one := range b.standings {
		if standings[one.policy] != one.standing {
			changed = append(changed, one.policy)
		}
		delete(standings, one.policy)
	}
	return append(changed, slices.Sorted(maps.Keys(standings))...)
}

// accountsDiffer lists the policies that two accounts of an object differ in.
func accountsDiffer(a, b *auditedObject) []string {
	var changed []string
	for _, one := range b.results {
		if before := a.of(one.policy); before == nil || !reflect.DeepEqual(before.report(), one.report()) {
			changed = append(changed, one.policy)
		}
	}
	if a != nil {
		for _, one := range a.results {
			if b.of(one.policy) == nil {
				changed = append(changed, one.policy)
			}
		}
	}
	return changed
}

// report is what of a result is told to others.
func (r policyResult) report() policyResult {
	r.due = time.Time{}
	return r
}

// drop forgets an object, and returns the policies that had something to say.
func (r *results) drop(kind schema.GroupVersionKind, key objectKey) []string {
	old, ok := r.entries[kind][key]
	if !ok {
		return nil
	}
	delete(r.found, key)
	changed := differing(old.signature, &signature{})
	r.release(old.signature)
	delete(r.entries[kind], key)
	return changed
}

// keys are the objects of a kind that some policy judges.
func (r *results) keys(kind schema.GroupVersionKind) []objectKey {
	return slices.Collect(maps.Keys(r.entries[kind]))
}

// dropPolicy forgets what a policy says of the objects of a kind, and returns
// those of which there is something else to tell.
func (r *results) dropPolicy(policy string, kind schema.GroupVersionKind) []objectKey {
	var changed []objectKey
	only := map[string]bool{policy: true}
	for key, entry := range r.entries[kind] {
		if !slices.ContainsFunc(entry.signature.standings, func(one policyStanding) bool { return one.policy == policy }) {
			continue
		}
		object := auditedObject{kind: kind}
		if was := r.found[key]; was != nil {
			object = *was
			object.results = slices.DeleteFunc(slices.Clone(was.results), func(one policyResult) bool { return only[one.policy] })
			if len(object.results) < len(was.results) {
				changed = append(changed, key)
			}
		}
		next := &signature{standings: slices.DeleteFunc(slices.Clone(entry.signature.standings), func(one policyStanding) bool { return only[one.policy] })}
		r.put(kind, key, entry.signature, next, entry.content)
		if len(object.results) == 0 {
			delete(r.found, key)
		} else {
			r.found[key] = &object
		}
	}
	return changed
}

// due lists what is to be judged again at a time: the objects, and for each the
// policies that are to.
func (r *results) due(now time.Time) map[*auditedObject]map[string]bool {
	found := map[*auditedObject]map[string]bool{}
	for _, object := range r.found {
		for _, one := range object.results {
			if one.due.IsZero() || now.Before(one.due) {
				continue
			}
			if found[object] == nil {
				found[object] = map[string]bool{}
			}
			found[object][one.policy] = true
		}
	}
	return found
}

// nextDue is when due has something next, zero for never.
func (r *results) nextDue() (next time.Time) {
	for _, object := range r.found {
		for _, one := range object.results {
			if !one.due.IsZero() && (next.IsZero() || one.due.Before(next)) {
				next = one.due
			}
		}
	}
	return next
}
