package policies_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/library"
	"github.com/penstock-dev/penstock/test/fixtures"
)

// benchJob is a job of about 4 kB with two roles, as an API server sends it.
func benchJob(b testing.TB) []byte {
	b.Helper()
	raw, err := os.ReadFile("testdata/job.json")
	if err != nil {
		b.Fatal(err)
	}
	return raw
}

// withManagedFields is the object with the record that kubectl apply leaves.
func withManagedFields(raw []byte) []byte {
	var fields strings.Builder
	for i := range 60 {
		fmt.Fprintf(&fields, `"f:field%d":{"f:inner":{}},`, i)
	}
	managed := `"metadata":{"managedFields":[{"manager":"kubectl","operation":"Apply","fieldsType":"FieldsV1","fieldsV1":{` + fields.String() + `".":{}}}],`
	return bytes.Replace(raw, []byte(`"metadata":{`), []byte(managed), 1)
}

func BenchmarkParse(b *testing.B) {
	raw := benchJob(b)
	b.Run("tokens", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := policies.ParseJSON(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("opa", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ast.ValueFromReader(bytes.NewReader(raw)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	raw := benchJob(b)
	loaded, err := library.Policies()
	if err != nil {
		b.Fatal(err)
	}
	request := createRequest(raw)
	loaded = slices.DeleteFunc(loaded, func(policy *v1.WorkloadPolicy) bool {
		return len(policy.Spec.MatchConditions) > 0 || !slices.Contains(policy.Spec.Match.Resources[0].Kinds, v1.TrainingJobKind)
	})
	b.Run("the library", func(b *testing.B) {
		benchJudge(b, loaded, request, len(loaded))
	})
	b.Run("the library, with managed fields", func(b *testing.B) {
		benchJudge(b, loaded, createRequest(withManagedFields(raw)), len(loaded))
	})
	for _, loaded := range loaded {
		b.Run(loaded.Name, func(b *testing.B) {
			benchJudge(b, []*v1.WorkloadPolicy{loaded}, request, 1)
		})
	}
	b.Run("500 loaded, none matches", func(b *testing.B) {
		other := request
		other.Kind = metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Other"}
		benchJudge(b, copies(loaded, 500), other, 0)
	})
}

func benchJudge(b *testing.B, loaded []*v1.WorkloadPolicy, request policies.Request, judged int) {
	engine := policies.NewEngine(policies.Options{})
	if faults := engine.Replace(loaded); len(faults) > 0 {
		b.Fatal(faults)
	}
	for _, need := range engine.Inventory().Needs() {
		if err := engine.Inventory().Replace(need.Kind, fixtures.Nodes(100)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		verdict := engine.Snapshot().Judge(b.Context(), request)
		if !verdict.Allowed() || len(verdict.Judged) != judged {
			b.Fatal(verdict)
		}
	}
}

func BenchmarkLoad500(b *testing.B) {
	loaded, err := library.Policies()
	if err != nil {
		b.Fatal(err)
	}
	many := copies(loaded, 500)
	for b.Loop() {
		policies.NewEngine(policies.Options{}).Replace(many)
	}
}

func copies(loaded []*v1.WorkloadPolicy, n int) []*v1.WorkloadPolicy {
	many := make([]*v1.WorkloadPolicy, n)
	for i := range many {
		many[i] = loaded[i%len(loaded)].DeepCopy()
		many[i].Name = fmt.Sprintf("%s-%d", many[i].Name, i)
	}
	return many
}
