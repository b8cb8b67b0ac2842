package stored

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShorten(t *testing.T) {
	for limit := 4; limit < 12; limit++ {
		short := Shorten("a\n  "+strings.Repeat("ü", 20), limit)
		if len(short) > limit || !utf8.ValidString(short) || !strings.HasSuffix(short, "…") || strings.Contains(short, "\n") {
			t.Errorf("limit %d: got %q", limit, short)
		}
	}
	if got := Shorten("as it is", 8); got != "as it is" {
		t.Errorf("got %q", got)
	}
}
