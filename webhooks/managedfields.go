package webhooks

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
)

// ownersToKeep gives the managed fields that an update has to leave as they
// were, or nil. It has to where, with its defaults, it changes nothing else,
// and where the same managers own the same fields as before.
//
// kubectl apply without --server-side replaces whole lists of a custom
// resource. That takes defaults out of them, and puts a new time on the owner
// of the list; the defaults are back a moment later, but for the API server the
// new time is a change once the entries sort in another order. An unchanged
// manifest would then make a new resourceVersion, and an event for everybody
// who watches.
func ownersToKeep(old, object map[string]any) []any {
	oldMetadata, _ := old["metadata"].(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	before, _ := oldMetadata["managedFields"].([]any)
	after, _ := metadata["managedFields"].([]any)
	if len(before) == 0 || len(before) != len(after) || equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	if !equality.Semantic.DeepEqual(withoutOwners(old, oldMetadata), withoutOwners(object, metadata)) {
		return nil
	}
	for _, entry := range after {
		if !ownsTheSame(before, entry) {
			return nil
		}
	}
	return before
}

func withoutOwners(object, metadata map[string]any) map[string]any {
	metadata = maps.Clone(metadata)
	delete(metadata, "managedFields")
	object = maps.Clone(object)
	object["metadata"] = metadata
	return object
}

// ownsTheSame reports whether one of the entries says the same as another,
// whenever it was written.
func ownsTheSame(entries []any, other any) bool {
	timeless := func(entry any) any {
		members, _ := entry.(map[string]any)
		members = maps.Clone(members)
		delete(members, "time")
		return members
	}
	for _, entry := range entries {
		if equality.Semantic.DeepEqual(timeless(entry), timeless(other)) {
			return true
		}
	}
	return false
}
