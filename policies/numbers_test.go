package policies_test

import (
	"fmt"
	"testing"

	"github.com/penstock-dev/penstock/policies"
)

// TestNumbersAreExact judges numbers that a float64 would round: 2^53+1,
// 2^63-1 and beyond.
func TestNumbersAreExact(t *testing.T) {
	object := []byte(`{"kind":"X","spec":{"odd":9007199254740993,"even":9007199254740992,"long":9223372036854775807,"beyond":1234567890123456789012345678901,
		"quantity":"9007199254740993","suffixed":"9007199254740993Ki","list":[9007199254740992,9007199254740993]}}`)
	holds := []string{
		`input.object.spec.odd != input.object.spec.even`,
		`input.object.spec.odd > input.object.spec.even`,
		`input.object.spec.odd == 9007199254740993`,
		`not input.object.spec.odd == 9007199254740992`,
		`input.object.spec.odd == input.parameters.odd`,
		`input.object.spec.even < input.parameters.odd`,
		`input.object.spec.long == input.parameters.long`,
		`input.parameters.nested.beyond == input.object.spec.beyond`,
		`input.object.spec.odd - input.object.spec.even == 1`,
		`input.object.spec.odd + 1 == 9007199254740994`,
		`input.object.spec.odd * 3 == 27021597764222979`,
		`input.object.spec.odd % 10 == 3`,
		`input.object.spec.long + 1 == 9223372036854775808`,
		`input.object.spec.beyond + 1 == 1234567890123456789012345678902`,
		`sum(input.object.spec.list) == 18014398509481985`,
		`max(input.object.spec.list) == 9007199254740993`,
		`count({n | some n in input.object.spec.list}) == 2`,
		`9007199254740993 in input.object.spec.list`,
		`count(input.object.spec.list) < 9007199254740993`,
		`to_number(input.object.spec.quantity) == input.object.spec.odd`,
		`units.parse(input.object.spec.quantity) == input.object.spec.odd`,
		`units.parse_bytes(input.object.spec.suffixed) == 9223372036854776832`,
		`sprintf("%d", [input.object.spec.odd]) == "9007199254740993"`,
		`sprintf("%v", [input.object.spec.beyond]) == "1234567890123456789012345678901"`,
		`json.unmarshal(json.marshal(input.object.spec)) == input.object.spec`,
		`floor(input.object.spec.odd) == 9007199254740993`,
		`abs(0 - input.object.spec.odd) == 9007199254740993`,
		`input.review.object.spec.odd == 9007199254740993`,
		`data.penstock.workload.quantity(input.object.spec.quantity) == 9007199254740993`,
		`data.penstock.workload.quantity(input.object.spec.odd) == 9007199254740993`,
	}
	given := parameters(`{"odd":9007199254740993,"long":9223372036854775807,"nested":{"beyond":1234567890123456789012345678901}}`)
	for _, expression := range holds {
		rego := "package p\nimport data.penstock.workload\nviolation contains \"holds\" if { count(workload.roles) >= 0; " + expression + " }"
		verdict := judge(t, policy("p", rego, given), createRequest(object))
		if len(verdict.Errors) > 0 || len(verdict.Denied()) != 1 {
			t.Errorf("%s does not hold: %v", expression, verdict.Errors)
		}
	}
}

func TestParsedNumbersKeepTheirDigits(t *testing.T) {
	for _, digits := range []string{"9007199254740993", "-9007199254740993", "18446744073709551617", "0.1000000000000000055", "123456789012345678901234567890"} {
		value, err := policies.ParseJSON([]byte(digits))
		if err != nil || fmt.Sprint(value) != digits {
			t.Errorf("%s became %v, %v", digits, value, err)
		}
	}
}
