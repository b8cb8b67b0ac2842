package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/stored"
)

// does is the outcome of a policy with an action.
func does(action v1.PolicyAction) outcome {
	return outcome{asked: true, violations: []stored.Violation{{Violation: policies.Violation{Message: "is wrong", Fix: "mend it", Action: action}, Path: "spec.a"}}}
}

func TestTally(t *testing.T) {
	passes, unasked := outcome{asked: true}, outcome{}
	tests := map[string]struct {
		edit bool
		// pairs are what the new policy and the old one say of an object.
		pairs [][2]outcome
		edits func(*tally)
		want  []string
	}{
		"asked about none": {
			pairs: [][2]outcome{{unasked, unasked}, {unasked, unasked}}, edits: func(t *tally) { t.open, t.leaving = 2, []string{"match.exclude", "matchConditions"} },
			want: []string{"preview: is asked about none of the 2 stored objects of its kinds: left out by match.exclude or matchConditions"},
		},
		"asked about some":                       {pairs: [][2]outcome{{unasked, unasked}, {passes, passes}}, edits: func(t *tally) { t.open = 2 }},
		"asked about none, as far as it is seen": {pairs: [][2]outcome{{unasked, unasked}}, edits: func(t *tally) { t.open, t.late, t.total = 1, true, 2 }, want: []string{"preview: time was over before any stored object (of up to 1) was judged, so that nothing is known of them"}},
		"faults, by an edit": {
			edit: true, pairs: [][2]outcome{{outcome{asked: true, errors: []policies.PolicyError{{Message: "the objects are not there"}}}, passes}},
			want: []string{"preview: could not be evaluated for 1 of 1 stored objects, by this change: the objects are not there"},
		},
		"nothing to say": {pairs: [][2]outcome{{passes, passes}}},
		"what would be refused": {
			pairs: [][2]outcome{{does(v1.ActionDeny), passes}, {passes, passes}, {does(v1.ActionDeny), passes}},
			want:  []string{"preview: 2 of 3 stored objects would be refused if written now (to let them pass: action Warn or Audit, or exceptions)"},
		},
		"each action for itself": {
			pairs: [][2]outcome{{does(v1.ActionDeny), passes}, {does(v1.ActionWarn), passes}, {does(v1.ActionAudit), passes}},
			want: []string{
				"preview: 1 of 3 stored objects would be refused if written now (to let them pass: action Warn or Audit, or exceptions)",
				"preview: 1 of 3 stored objects would be warned about if written now",
				"preview: 1 of 3 stored objects break this policy, which only records it",
			},
		},
		"of an edit, only what comes off worse": {
			edit: true,
			pairs: [][2]outcome{
				{does(v1.ActionDeny), does(v1.ActionDeny)}, {does(v1.ActionDeny), does(v1.ActionWarn)},
				{does(v1.ActionWarn), does(v1.ActionDeny)}, {passes, does(v1.ActionDeny)},
			},
			want: []string{
				"preview: 1 of 4 stored objects, by this change, would be refused if written now (to let them pass: action Warn or Audit, or exceptions)",
				"preview: would now refuse 2 of 4 stored objects; the policy in force refuses 3",
			},
		},
		"an edit that lets all pass": {
			edit:  true,
			pairs: [][2]outcome{{passes, does(v1.ActionDeny)}, {does(v1.ActionAudit), does(v1.ActionDeny)}, {passes, passes}},
			want:  []string{"preview: would now refuse 0 of 3 stored objects; the policy in force refuses 2"},
		},
		"an edit that is asked about less": {
			edit:  true,
			pairs: [][2]outcome{{unasked, does(v1.ActionDeny)}, {does(v1.ActionDeny), does(v1.ActionDeny)}, {passes, passes}},
			want:  []string{"preview: would now refuse 1 of 2 stored objects; the policy in force refuses 2 of 3"},
		},
		"an edit that lets others pass, in time": {
			edit:  true,
			pairs: [][2]outcome{{passes, does(v1.ActionDeny)}},
			edits: func(t *tally) { t.late, t.total = true, 10 },
			want:  []string{"preview: would now refuse 0 of the 1 judged in time of up to 10 stored objects; the policy in force refuses 1"},
		},
		"only what the policy is asked about": {
			pairs: [][2]outcome{{does(v1.ActionDeny), passes}, {unasked, passes}, {passes, passes}, {unasked, passes}},
			want:  []string{"preview: 1 of 2 stored objects would be refused if written now (to let them pass: action Warn or Audit, or exceptions)"},
		},
		"how far it came in time": {
			pairs: [][2]outcome{{does(v1.ActionDeny), passes}},
			edits: func(t *tally) { t.late, t.total = true, 900 },
			want:  []string{"preview: 1 of the 1 judged in time of up to 900 stored objects would be refused if written now (to let them pass: action Warn or Audit, or exceptions)"},
		},
		"how far it came, of nobody knows how many": {
			pairs: [][2]outcome{{passes, passes}},
			edits: func(t *tally) { t.late, t.vague, t.total = true, true, 900 },
			want:  []string{"preview: none of the 1 judged in time of more stored objects would be affected"},
		},
		"that it came nowhere": {
			pairs: [][2]outcome{{unasked, unasked}},
			edits: func(t *tally) { t.late, t.total = true, 27 },
			want:  []string{"preview: time was over before any stored object (of up to 26) was judged, so that nothing is known of them"},
		},
		"that it came nowhere, of nobody knows how many": {
			edits: func(t *tally) { t.late, t.vague = true, true },
			want:  []string{"preview: time was over before any stored object was judged, so that nothing is known of them"},
		},
		"some by name": {
			pairs: [][2]outcome{{does(v1.ActionDeny), passes}, {does(v1.ActionDeny), passes}},
			edits: func(t *tally) {
				t.named = []named{{schema.GroupKind{Kind: "Pod"}, "team", "a", does(v1.ActionDeny).violations[0]}, {schema.GroupKind{Kind: "Node"}, "", "n", stored.Violation{Violation: policies.Violation{Message: "bad"}}}}
				t.unnamed = 1
			},
			want: []string{
				"preview: 2 of 2 stored objects would be refused if written now (to let them pass: action Warn or Audit, or exceptions)",
				"preview: Pod team/a: spec.a: is wrong: mend it",
				"preview: Node n: bad",
				"preview: objects that you may not list are counted and not named",
			},
		},
		"what could be told in part": {
			pairs: [][2]outcome{
				{outcome{asked: true, missing: []policies.NotEvaluated{{Missing: policies.MissingUser, Partly: true}}}, passes},
				{outcome{asked: true, violations: does(v1.ActionDeny).violations, missing: []policies.NotEvaluated{{Missing: policies.MissingUser, Partly: true}}}, passes},
			},
			want: []string{
				"preview: 1 of 2 stored objects would be refused if written now (to let them pass: action Warn or Audit, or exceptions)",
				"preview: not evaluated in full for 2 of 2 stored objects: the rule reads who makes a request, which a stored object does not tell",
			},
		},
		"what could not be told": {
			pairs: [][2]outcome{
				{outcome{asked: true, errors: []policies.PolicyError{{Message: "too slow"}}}, passes},
				{outcome{asked: true, missing: []policies.NotEvaluated{{Missing: policies.MissingUser}}}, passes},
			},
			edits: func(t *tally) {
				t.unseen = []stored.UnseenKind{
					{Kind: "*.apps", Reason: "only kinds that are named are looked at"}, {Kind: "Widget", Reason: "no"},
					{Kind: "*.batch", Reason: "only kinds that are named are looked at"},
				}
			},
			want: []string{
				"preview: could not be evaluated for 1 of 2 stored objects: too slow",
				"preview: not evaluated for 1 of 2 stored objects: the rule reads who makes a request, which a stored object does not tell",
				"preview: stored objects of *.apps, *.batch are not looked at: only kinds that are named are looked at",
				"preview: stored objects of Widget are not looked at: no",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			counted := newTally(tc.edit)
			for _, pair := range tc.pairs {
				counted.add(pair[0], pair[1])
			}
			counted.total = counted.seen
			if tc.edits != nil {
				tc.edits(counted)
			}
			if diff := cmp.Diff(tc.want, counted.warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever comes first, those that come off worst are named, in the order they came.
func TestTallyNamesTheWorst(t *testing.T) {
	tests := map[string]struct {
		actions string
		want    string
	}{
		"few":            {actions: "awd", want: "d2 w1 a0"},
		"refused last":   {actions: "aaaaawwdd", want: "d7 d8 w5 w6 a0"},
		"refused first":  {actions: "dddddwa", want: "d0 d1 d2 d3 d4"},
		"refused alone":  {actions: "dddddddd", want: "d0 d1 d2 d3 d4"},
		"many refused":   {actions: "aaaawddddddd", want: "d5 d6 d7 d8 d9"},
		"recorded alone": {actions: "aaaaaaa", want: "a0 a1 a2 a3 a4"},
		"nothing":        {},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tally := newTally(false)
			for i, letter := range tc.actions {
				action := map[rune]v1.PolicyAction{'d': v1.ActionDeny, 'w': v1.ActionWarn, 'a': v1.ActionAudit}[letter]
				if tally.wants(action) {
					tally.name(named{name: fmt.Sprintf("%c%d", letter, i), violation: does(action).violations[0]})
				}
				if len(tally.named) > maxNamed {
					t.Fatalf("%d are named", len(tally.named))
				}
			}
			var got []string
			for _, one := range tally.named {
				got = append(got, one.name)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("named %v, want %s", got, tc.want)
			}
		})
	}
}
