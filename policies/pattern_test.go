package policies

import (
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

func TestMatchesPattern(t *testing.T) {
	for pattern, names := range map[string]struct{ matches, others []string }{
		"team":                       {[]string{"team"}, []string{"", "tea", "team-a", "a-team"}},
		"team-*":                     {[]string{"team-", "team-a"}, []string{"team", "a-team-b"}},
		"*-system":                   {[]string{"kube-system", "-system"}, []string{"system", "kube-systems"}},
		"a*b*c":                      {[]string{"abc", "a1b2c", "abbcc", "acbbc"}, []string{"ab", "acb", "abcd"}},
		"*":                          {[]string{"", "a"}, nil},
		"**":                         {[]string{"", "a"}, nil},
		"*aab":                       {[]string{"aab", "aaaab"}, []string{"aaba"}},
		"a?":                         {[]string{"a?"}, []string{"ab"}},
		"system:serviceaccount:ci:*": {[]string{"system:serviceaccount:ci:robot"}, []string{"system:serviceaccount:cd:robot"}},
	} {
		for _, name := range names.matches {
			if !matchesPattern(pattern, name) {
				t.Errorf("%q does not match %q", pattern, name)
			}
		}
		for _, name := range names.others {
			if matchesPattern(pattern, name) {
				t.Errorf("%q matches %q", pattern, name)
			}
		}
	}
}

func FuzzMatchesPattern(f *testing.F) {
	for _, seed := range [][2]string{{"a*b", "aab"}, {"*a*a*", "aaa"}, {"", ""}, {"*", "x"}, {"a*b*c", "abcabc"}, {"ü*", "üb"}, {"a.c", "abc"}, {"[a]*", "[a]"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 64 || len(name) > 253 {
			return
		}
		// Regular expressions read what is no UTF-8 as one character.
		pattern, name = strings.ToValidUTF8(pattern, "?"), strings.ToValidUTF8(name, "?")
		parts := strings.Split(pattern, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		want := regexp.MustCompile(`(?s)\A` + strings.Join(parts, ".*") + `\z`).MatchString(name)
		if got := matchesPattern(pattern, name); got != want {
			t.Errorf("pattern %q, name %q: got %v, want %v", pattern, name, got, want)
		}
	})
}

// Exceptions and excludes take patterns alike.
func TestPatternsOfExceptionsAndExcludes(t *testing.T) {
	request := func(namespace, name, user string, groups ...string) *Request {
		one := &Request{Namespace: namespace, Name: name, UserKnown: true, Now: time.Unix(0, 0)}
		one.User.Username, one.User.Groups = user, groups
		return one
	}
	until := metav1.NewTime(time.Unix(60, 0))
	exceptions := []v1.PolicyException{{Namespaces: []string{"team-*", "*-lab"}, Names: []string{"z*", "*-old"}, Until: until}}
	for _, tc := range []struct {
		namespace, name string
		want            bool
	}{
		{"team-a", "zebra", true}, {"a-lab", "train-old", true}, {"team-a", "train", false}, {"team", "zebra", false}, {"", "zebra", false},
	} {
		if got := exceptionFor(exceptions, request(tc.namespace, tc.name, "")) != nil; got != tc.want {
			t.Errorf("%s/%s: excepted is %v, want %v", tc.namespace, tc.name, got, tc.want)
		}
	}
	everywhere := []v1.PolicyException{{Namespaces: []string{"*"}, Names: []string{"z*"}, Until: until}}
	if exceptionFor(everywhere, request("any", "z", "")) == nil || exceptionFor(everywhere, request("", "z", "")) != nil {
		t.Error("* is every namespace, and what is in none is in none of them")
	}
	cluster := []v1.PolicyException{{Names: []string{"gpu-*"}, Until: until}}
	if exceptionFor(cluster, request("", "gpu-1", "")) == nil || exceptionFor(cluster, request("", "cpu-1", "")) != nil || exceptionFor(cluster, request("any", "gpu-1", "")) != nil {
		t.Error("names alone are those of what is in no namespace")
	}
	namespace := func(name string) *Request {
		one := request(name, name, "")
		one.Kind.Kind = "Namespace"
		return one
	}
	if exceptionFor(cluster, namespace("gpu-1")) == nil || exceptionFor(cluster, namespace("cpu-1")) != nil || exceptionFor(everywhere, namespace("z")) == nil {
		t.Error("a Namespace is in no namespace, and in its own")
	}
	m := matcher{excludedNamespaces: []string{"*-system"}, excludedUsers: []string{"system:serviceaccount:ci:*"}, excludedGroups: []string{"ops:*"}}
	for _, tc := range []struct {
		request *Request
		want    bool
	}{
		{request("kube-system", "a", ""), true},
		{request("team", "a", "ada"), false},
		{request("team", "a", "system:serviceaccount:ci:robot"), true},
		{request("team", "a", "ada", "dev", "ops:night"), true},
	} {
		if got := m.excludes(tc.request); got != tc.want {
			t.Errorf("%+v: excluded is %v, want %v", tc.request, got, tc.want)
		}
	}
}
