package audit

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
)

// contentSeed makes hashes of content comparable within one process.
var contentSeed = maphash.MakeSeed()

// contentOf is a hash of what an object is judged by: what of its metadata rules
// may be about, and all but its metadata and status. With status, that counts too.
// The webhooks let writes pass of finalizers and owners alone; what these leave is
// to be seen here. It is never 0.
func contentOf(object map[string]any, status bool) uint64 {
	bare := make(map[string]any, len(object)+1)
	for member, value := range object {
		if member != "metadata" && (member != "status" || status) {
			bare[member] = value
		}
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		bare["metadata"] = map[string]any{
			"labels": metadata["labels"], "annotations": metadata["annotations"],
			"finalizers": metadata["finalizers"], "ownerReferences": metadata["ownerReferences"],
		}
	}
	return max(1, hashOf(bare))
}

// hashOf is a hash of a JSON value that does not depend on the order of members.
func hashOf(value any) uint64 {
	switch value := value.(type) {
	case map[string]any:
		sum := uint64(len(value))
		for member, of := range value {
			sum += mix(maphash.String(contentSeed, member), hashOf(of))
		}
		return mix(1, sum)
	case []any:
		sum := uint64(2)
		for _, of := range value {
			sum = mix(sum, hashOf(of))
		}
		return sum
	case string:
		return maphash.String(contentSeed, value)
	case bool:
		if value {
			return 3
		}
		return 4
	case int64:
		return mix(5, uint64(value)) //nolint:gosec // Any bits do.
	case float64:
		return mix(6, math.Float64bits(value))
	case nil:
		return 7
	default:
		return maphash.String(contentSeed, fmt.Sprint(value))
	}
}

// mix is a hash of two numbers in order.
func mix(a, b uint64) uint64 {
	var both [16]byte
	binary.LittleEndian.PutUint64(both[:8], a)
	binary.LittleEndian.PutUint64(both[8:], b)
	return maphash.Bytes(contentSeed, both[:])
}
