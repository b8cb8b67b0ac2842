package policy

import "testing"

func TestWithoutVerdicts(t *testing.T) {
	for text, want := range map[string]string{
		"package a\nviolation[{\"msg\": msg}] { msg := \"deny\" }": "package a\nviolation[{\"msg\": msg}] { msg := \"deny\" }",
		"package a\n# deny\nviolation[{\"msg\": m}] { deny[m]; input.parameters.deny; n := count(violation_of_old) }\ndeny[m] { m := \"deny it\" }\nviolation_of_old[x] { x := `deny` }": "package a\n# deny\nviolation[{\"msg\": m}] { helper_deny[m]; input.parameters.deny; n := count(helper_violation_of_old) }\n" +
			"helper_deny[m] { m := \"deny it\" }\nhelper_violation_of_old[x] { x := `deny` }",
		"package a.b\nviolation[{\"msg\": \"x\"}] { data.a.b.deny; not data.c.deny }\ndeny { input.x }":       "package a.b\nviolation[{\"msg\": \"x\"}] { data.a.b.helper_deny; not data.c.deny }\nhelper_deny { input.x }",
		"package a\nimport rego.v1\ndefault warn := false\nwarn if input.x\nviolation contains \"x\" if warn": "package a\nimport rego.v1\ndefault helper_warn := false\nhelper_warn if input.x\nviolation contains \"x\" if helper_warn",
		"package a\nviolation[m] { m := concat(\"\\\"\", [denied]) }\ndenied := \"deny\"":                     "package a\nviolation[m] { m := concat(\"\\\"\", [denied]) }\ndenied := \"deny\"",
	} {
		if got := withoutVerdicts(text); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}
