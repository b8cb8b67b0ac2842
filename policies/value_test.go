package policies_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/penstock-dev/penstock/policies"
)

func TestParseJSONIsOPAs(t *testing.T) {
	for name, text := range map[string]string{
		"scalars":                        `[null, true, false, 0, -1, 1.5, "", "a"]`,
		"empty":                          `{"a": {}, "b": []}`,
		"escapes":                        `{"a\nb": "\u00e9\t\"\\", "\ud83d\ude00": "\/"}`,
		"beyond ASCII":                   `{"größe": "日本"}`,
		"large numbers":                  `[9007199254740993, 18446744073709551616, 1e3, 0.1, 123456789012345678901234567890]`,
		"nesting":                        `[[[{"a":[{"b":[1,[2,[3]]]}]}]]]`,
		"a scalar":                       ` "alone" `,
		"more terms than one slab holds": "[" + strings.Repeat(`{"k":[1,"v"]},`, 200) + "0]",
	} {
		got, err := policies.ParseJSON([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, err := ast.ValueFromReader(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if got.Compare(want) != 0 || got.Hash() != want.Hash() {
			t.Errorf("%s:\n got %v\nwant %v", name, got, want)
		}
	}
}

func TestParseJSONKeepsDigits(t *testing.T) {
	for _, text := range []string{"9007199254740993", "1.10", "1e3", "123456789012345678901234567890.5"} {
		got, err := policies.ParseJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != text {
			t.Errorf("got %v, want %s", got, text)
		}
	}
}

func TestParseJSONRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                   ``,
		"half an object":            `{"a":`,
		"two values":                `{} {}`,
		"a name twice":              `{"a":1,"a":2}`,
		"a name twice, one escaped": `{"a":1,"\u0061":2}`,
		"a trailing comma":          `[1,]`,
		"a number too large":        `1e99999999`,
		"a leading zero":            `01`,
		"a word":                    `yes`,
		"invalid UTF-8":             "\"\xff\"",
		"too deep":                  strings.Repeat("[", 20000),
	} {
		if got, err := policies.ParseJSON([]byte(text)); err == nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"b",null]}`, `"\u00e9"`, `1e3`, `[`, `{"a":1,"a":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := policies.ParseJSON(text)
		if err != nil {
			return
		}
		want, err := ast.ValueFromReader(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("OPA refuses: %v", err)
		}
		if got.Compare(want) != 0 {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
