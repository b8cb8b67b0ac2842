package conversion

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Converters move pod templates, metrics and resource lists; they never look
// into them. So their JSON is not decoded: it rides, as it was written, in one
// string field of the Go value, is copied along with it, and is written out
// again. That is what makes a conversion cost little more than a copy, and it
// keeps numbers and quantities in the words their author used.

// reader decodes one spec and counts, in what it carried, the marks of values
// that a Go type would drop.
type reader struct {
	carried int
}

func (r *reader) carry(dec *jsontext.Decoder) (string, error) {
	raw, err := dec.ReadValue()
	if err != nil {
		return "", err
	}
	r.carried += countMarks(raw)
	return string(raw), nil
}

func (r *reader) unmarshalers() *json.Unmarshalers {
	return json.JoinUnmarshalers(
		json.UnmarshalFromFunc(func(dec *jsontext.Decoder, template *corev1.PodTemplateSpec) (err error) {
			template.Name, err = r.carry(dec)
			return err
		}),
		json.UnmarshalFromFunc(func(dec *jsontext.Decoder, metrics *[]autoscalingv2.MetricSpec) error {
			raw, err := r.carry(dec)
			*metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.MetricSourceType(raw)}}
			return err
		}),
		json.UnmarshalFromFunc(func(dec *jsontext.Decoder, list *map[corev1.ResourceName]resource.Quantity) error {
			raw, err := r.carry(dec)
			*list = map[corev1.ResourceName]resource.Quantity{corev1.ResourceName(raw): {}}
			return err
		}),
	)
}

var marshalers = json.JoinMarshalers(
	json.MarshalToFunc(func(enc *jsontext.Encoder, template corev1.PodTemplateSpec) error {
		return enc.WriteValue(jsontext.Value(template.Name))
	}),
	json.MarshalToFunc(func(enc *jsontext.Encoder, metrics []autoscalingv2.MetricSpec) error {
		return enc.WriteValue(jsontext.Value(metrics[0].Type))
	}),
	json.MarshalToFunc(func(enc *jsontext.Encoder, list map[corev1.ResourceName]resource.Quantity) error {
		for raw := range list {
			return enc.WriteValue(jsontext.Value(raw))
		}
		return enc.WriteValue(jsontext.Value("null"))
	}),
)

// The members of the API types carry encoding/json's tags, whose omitempty
// keeps an empty object that a pointer leads to.
var codecOptions = json.JoinOptions(
	jsonv1.OmitEmptyWithLegacySemantics(true),
	json.RejectUnknownMembers(true),
	jsontext.AllowDuplicateNames(true),
	jsontext.AllowInvalidUTF8(true),
)

var writeOptions = json.JoinOptions(codecOptions, json.WithMarshalers(marshalers), json.Deterministic(true))

// decodeSpec decodes the JSON of a spec into spec. It reports whether spec
// holds all that raw says: it does not when raw has nulls or empty values
// outside the parts that are carried, which a Go type drops.
func decodeSpec(raw []byte, spec any) (exact bool, err error) {
	var r reader
	if err := json.Unmarshal(raw, spec, codecOptions, json.WithUnmarshalers(r.unmarshalers())); err != nil {
		return false, err
	}
	return countMarks(raw) == r.carried, nil
}

func encodeSpec(spec any) ([]byte, error) {
	return json.Marshal(spec, writeOptions)
}

// countMarks counts what may be a null or an empty value. Counting one too
// many costs time only.
func countMarks(raw []byte) int {
	count := 0
	for _, mark := range [][]byte{[]byte("null"), []byte("{}"), []byte("[]"), []byte(`""`)} {
		count += bytes.Count(raw, mark)
	}
	return count
}
