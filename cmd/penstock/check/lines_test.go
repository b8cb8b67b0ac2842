package check_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/check"
)

// TestLinesOfALargeList: where things are written is looked up for each fault of each
// object. The time has to grow with these, and not with the whole text for each.
func TestLinesOfALargeList(t *testing.T) {
	const items = 3000
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: List\nitems:\n")
	for i := range items {
		fmt.Fprintf(&text, "- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: m%d\n    namespace: team\n  data:\n    a: %q\n", i, strings.Repeat("x", 300))
	}
	file := filepath.Join(t.TempDir(), "list.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, unreadable := check.Load([]string{file}, false, nil)
	if len(objects) != items || len(unreadable) > 0 {
		t.Fatalf("got %d objects, %v", len(objects), unreadable)
	}
	began := time.Now()
	for i, object := range objects {
		if got, want := object.Line("data.a"), 3+7*i+7; got != want {
			t.Fatalf("item %d: line %d, want %d", i, got, want)
		}
	}
	// Parsing it once takes a tenth of a second; parsing it for each, minutes.
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
}
