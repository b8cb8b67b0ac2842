package certs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWithAuthority(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	known := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		known[name] = string(newIssuer(t, name, now.Add(time.Hour)).pem)
	}
	known["expired"] = string(newIssuer(t, "expired", now.Add(-time.Second)).pem)
	known["no certificate"] = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	bundleOf := func(names ...string) string {
		bundle := ""
		for _, name := range names {
			bundle += known[name]
		}
		return bundle
	}
	tests := map[string]struct {
		bundle    string
		authority string
		want      []string
	}{
		"the first authority makes the bundle":                  {"", "a", []string{"a"}},
		"what a chart left in place of a bundle goes":           {"\n", "a", []string{"a"}},
		"the authority that is there changes nothing":           {bundleOf("a"), "a", []string{"a"}},
		"a new authority comes first and keeps the others":      {bundleOf("b", "c"), "a", []string{"a", "b", "c"}},
		"an authority that comes back moves to the front":       {bundleOf("b", "a", "c"), "a", []string{"a", "b", "c"}},
		"an authority is kept once":                             {bundleOf("b", "b", "a", "a"), "a", []string{"a", "b"}},
		"an expired authority goes":                             {bundleOf("expired", "b"), "a", []string{"a", "b"}},
		"what is no certificate goes":                           {bundleOf("no certificate", "b"), "a", []string{"a", "b"}},
		"text between the certificates goes":                    {"# ours\n" + bundleOf("b") + "# theirs\n" + bundleOf("c"), "a", []string{"a", "b", "c"}},
		"no more than five are kept, the newest":                {bundleOf("b", "c", "d", "e", "f", "g"), "a", []string{"a", "b", "c", "d", "e"}},
		"an authority without a line feed at its end is itself": {strings.TrimSpace(bundleOf("a")), "a", []string{"a"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := withAuthority([]byte(tc.bundle), []byte(known[tc.authority]), now)
			if diff := cmp.Diff(bundleOf(tc.want...), string(got)); diff != "" {
				t.Errorf("want %v (-want +got):\n%s", tc.want, diff)
			}
			again := withAuthority(got, []byte(known[tc.authority]), now)
			if diff := cmp.Diff(string(got), string(again)); diff != "" {
				t.Errorf("it does not come to rest (-once +twice):\n%s", diff)
			}
		})
	}
}

// Replicas whose caches differ write in turn; neither may lose the other's
// authority.
func TestWithAuthorityKeepsWhatOthersWrite(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	old, recent := newIssuer(t, "old", now.Add(time.Hour)).pem, newIssuer(t, "recent", now.Add(time.Hour)).pem
	bundle := []byte(nil)
	for i := range 6 {
		authority := old
		if i%2 == 1 {
			authority = recent
		}
		bundle = withAuthority(bundle, authority, now)
		if i > 0 && (!strings.Contains(string(bundle), string(old)) || !strings.Contains(string(bundle), string(recent))) {
			t.Fatalf("write %d lost an authority:\n%s", i, bundle)
		}
	}
}
