package policies

import (
	"iter"
	"slices"
	"strings"
)

// maxChunk is the number of entries at which a chunk of an ordered is cut in two.
const maxChunk = 256

// ordered is a map from strings that never changes: set and remove return
// another that shares all but one chunk with it. Its entries are in the order
// of their keys. The zero value is empty.
type ordered[V any] struct {
	// chunks are not empty, and in order.
	chunks [][]orderedEntry[V]
	len    int
}

type orderedEntry[V any] struct {
	key   string
	value V
}

func (e orderedEntry[V]) compare(key string) int { return strings.Compare(e.key, key) }

// find returns where an entry is or belongs.
func (m ordered[V]) find(key string) (chunk, at int, found bool) {
	chunk, found = slices.BinarySearchFunc(m.chunks, key, func(c []orderedEntry[V], key string) int { return c[0].compare(key) })
	if found {
		return chunk, 0, true
	}
	if chunk > 0 {
		chunk-- // the last one that begins before the key
	}
	if chunk < len(m.chunks) {
		at, found = slices.BinarySearchFunc(m.chunks[chunk], key, orderedEntry[V].compare)
	}
	return chunk, at, found
}

func (m ordered[V]) get(key string) (V, bool) {
	chunk, at, found := m.find(key)
	if !found {
		var none V
		return none, false
	}
	return m.chunks[chunk][at].value, true
}

// set returns the map with an entry added or changed.
func (m ordered[V]) set(key string, value V) ordered[V] {
	entry := orderedEntry[V]{key, value}
	if len(m.chunks) == 0 {
		return ordered[V]{chunks: [][]orderedEntry[V]{{entry}}, len: 1}
	}
	chunk, at, found := m.find(key)
	changed := ordered[V]{chunks: slices.Clone(m.chunks), len: m.len}
	if found {
		changed.chunks[chunk] = slices.Clone(m.chunks[chunk])
		changed.chunks[chunk][at] = entry
		return changed
	}
	changed.len++
	grown := make([]orderedEntry[V], 0, len(m.chunks[chunk])+1)
	grown = append(append(append(grown, m.chunks[chunk][:at]...), entry), m.chunks[chunk][at:]...)
	if len(grown) < maxChunk {
		changed.chunks[chunk] = grown
		return changed
	}
	changed.chunks[chunk] = slices.Clone(grown[:maxChunk/2])
	changed.chunks = slices.Insert(changed.chunks, chunk+1, slices.Clone(grown[maxChunk/2:]))
	return changed
}

// remove returns the map without an entry.
func (m ordered[V]) remove(key string) ordered[V] {
	chunk, at, found := m.find(key)
	if !found {
		return m
	}
	changed := ordered[V]{chunks: slices.Clone(m.chunks), len: m.len - 1}
	if len(m.chunks[chunk]) == 1 {
		changed.chunks = slices.Delete(changed.chunks, chunk, chunk+1)
		return changed
	}
	changed.chunks[chunk] = slices.Delete(slices.Clone(m.chunks[chunk]), at, at+1)
	return changed
}

func (m ordered[V]) all() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, chunk := range m.chunks {
			for _, entry := range chunk {
				if !yield(entry.key, entry.value) {
					return
				}
			}
		}
	}
}
