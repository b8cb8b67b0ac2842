package policies

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOrderedIsAMap compares an ordered with a map through thousands of
// changes, and earlier versions with what they were.
func TestOrderedIsAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var m ordered[int]
	want := map[string]int{}
	type version struct {
		m    ordered[int]
		want map[string]int
	}
	var versions []version
	for i := range 6000 {
		key := fmt.Sprintf("k%d", random.IntN(1500))
		if random.IntN(5) < 2 {
			m = m.remove(key)
			delete(want, key)
		} else {
			m = m.set(key, i)
			want[key] = i
		}
		if i%500 == 0 {
			versions = append(versions, version{m, maps.Clone(want)})
		}
	}
	for _, v := range append(versions, version{m, want}) {
		if diff := cmp.Diff(v.want, maps.Collect(v.m.all())); diff != "" {
			t.Fatalf("entries (-want +got):\n%s", diff)
		}
		if v.m.len != len(v.want) {
			t.Errorf("len is %d, want %d", v.m.len, len(v.want))
		}
		var keys []string
		for key := range v.m.all() {
			keys = append(keys, key)
		}
		if !slices.IsSorted(keys) {
			t.Error("the keys are not in order")
		}
		for key, value := range v.want {
			if got, ok := v.m.get(key); !ok || got != value {
				t.Fatalf("%s is %d, %t, want %d", key, got, ok, value)
			}
		}
		if _, ok := v.m.get("none"); ok {
			t.Error("there is a key that was never set")
		}
	}
	for key := range want {
		m = m.remove(key)
	}
	if m.len != 0 || len(m.chunks) != 0 {
		t.Errorf("%d entries are left in %d chunks", m.len, len(m.chunks))
	}
}
