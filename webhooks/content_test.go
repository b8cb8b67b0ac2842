package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMergeKeepsWhatWasWritten(t *testing.T) {
	role := func(name, cpu string) map[string]any {
		return map[string]any{"name": name, "cpu": cpu}
	}
	for name, tc := range map[string]struct {
		original, before, after, want []any
	}{
		"of items that are still there when one is added": {
			original: []any{role("Master", "1000m")},
			before:   []any{role("Master", "1")},
			after:    []any{role("Master", "1"), role("Worker", "1")},
			want:     []any{role("Master", "1000m"), role("Worker", "1")},
		},
		"of items that are left when one is dropped": {
			original: []any{role("Master", "1000m"), role("Worker", "2000m"), role("worker", "2000m")},
			before:   []any{role("Master", "1"), role("Worker", "2"), role("worker", "2")},
			after:    []any{role("Master", "1"), role("Worker", "2")},
			want:     []any{role("Master", "1000m"), role("Worker", "2000m")},
		},
		"except where no name tells what an item was": {
			original: []any{"1000m", "2000m"},
			before:   []any{"1", "2"},
			after:    []any{"2"},
			want:     []any{"2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, merge(tc.original, tc.before, tc.after)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
