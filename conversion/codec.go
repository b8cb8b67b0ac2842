package conversion

import (
	"bytes"
	"sync"

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

// The members of the API types carry encoding/json's tags, whose omitempty
// keeps an empty object that a pointer leads to.
var codecOptions = json.JoinOptions(
	jsonv1.OmitEmptyWithLegacySemantics(true),
	json.RejectUnknownMembers(true),
	json.Deterministic(true),
	jsontext.AllowDuplicateNames(true),
	jsontext.AllowInvalidUTF8(true),
)

// stand is written in the place of each carried value, for it to be put there
// without being scanned once more.
var stand = []byte(`"\u0000"`)

// A codec reads and writes specs. It is used for one at a time; codecs are
// pooled because the JSON library remembers by each what it knows of Go types.
type codec struct {
	read, write json.Options

	// raw is the text that a spec is read from, gap where the next part of the
	// spec begins that is not carried, and marks how many marks there were in
	// those before.
	raw   []byte
	gap   int64
	marks int
	// out are the carried values of the spec being written, in order, unless
	// they are written in place.
	out     []string
	inPlace bool
}

var codecs = sync.Pool{New: func() any { return newCodec() }}

func newCodec() *codec {
	c := &codec{}
	c.read = json.JoinOptions(codecOptions, json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(func(dec *jsontext.Decoder, template *corev1.PodTemplateSpec) (err error) {
			template.Name, err = c.carryIn(dec)
			return err
		}),
		json.UnmarshalFromFunc(func(dec *jsontext.Decoder, metrics *[]autoscalingv2.MetricSpec) error {
			raw, err := c.carryIn(dec)
			*metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.MetricSourceType(raw)}}
			return err
		}),
		json.UnmarshalFromFunc(func(dec *jsontext.Decoder, list *map[corev1.ResourceName]resource.Quantity) error {
			raw, err := c.carryIn(dec)
			*list = map[corev1.ResourceName]resource.Quantity{corev1.ResourceName(raw): {}}
			return err
		}),
	)))
	c.write = json.JoinOptions(codecOptions, json.WithMarshalers(json.JoinMarshalers(
		json.MarshalToFunc(func(enc *jsontext.Encoder, template corev1.PodTemplateSpec) error {
			return c.carryOut(enc, template.Name)
		}),
		json.MarshalToFunc(func(enc *jsontext.Encoder, metrics []autoscalingv2.MetricSpec) error {
			return c.carryOut(enc, string(metrics[0].Type))
		}),
		json.MarshalToFunc(func(enc *jsontext.Encoder, list map[corev1.ResourceName]resource.Quantity) error {
			for raw := range list {
				return c.carryOut(enc, string(raw))
			}
			return c.carryOut(enc, "null")
		}),
	)))
	return c
}

func (c *codec) carryIn(dec *jsontext.Decoder) (string, error) {
	raw, err := dec.ReadValue()
	if err != nil {
		return "", err
	}
	end := dec.InputOffset()
	c.marks += countMarks(c.raw[c.gap : end-int64(len(raw))])
	c.gap = end
	return string(raw), nil
}

func (c *codec) carryOut(enc *jsontext.Encoder, raw string) error {
	if c.inPlace {
		return enc.WriteValue(jsontext.Value(raw))
	}
	c.out = append(c.out, raw)
	return enc.WriteToken(jsontext.String("\x00"))
}

// spec decodes the spec that comes next, an object, into a pointer to its Go
// type. It reports whether that holds all that was read: it does not where there
// are nulls or empty values outside the parts that are carried, which a Go type
// drops.
func (s *scanner) spec(into any) (whole bool, err error) {
	if s.dec.PeekKind() != jsontext.KindBeginObject {
		return false, errNoObject
	}
	c := codecs.Get().(*codec)
	defer codecs.Put(c)
	c.raw, c.gap, c.marks = s.raw, s.dec.InputOffset(), 0
	err = json.UnmarshalDecode(s.dec, into, c.read)
	c.raw = nil
	if err != nil {
		return false, err
	}
	return c.marks+countMarks(s.raw[c.gap:s.dec.InputOffset()]) == 0, nil
}

// A specText is the JSON of a spec that is not put together yet, so that what
// it carries is copied once, to where it is sent from.
type specText struct {
	// written has a stand-in for each carried value.
	written []byte
	carried []string
}

func (t specText) size() int {
	size := len(t.written)
	for _, raw := range t.carried {
		size += len(raw)
	}
	return size
}

func (t specText) appendTo(out []byte) []byte {
	rest := t.written
	for _, raw := range t.carried {
		before, after, _ := bytes.Cut(rest, stand)
		out = append(append(out, before...), raw...)
		rest = after
	}
	return append(out, rest...)
}

func (t specText) bytes() []byte { return t.appendTo(make([]byte, 0, t.size())) }

// encodeSpec writes a spec as JSON.
func encodeSpec(spec any) (specText, error) {
	c := codecs.Get().(*codec)
	defer codecs.Put(c)
	c.out = nil
	written, err := json.Marshal(spec, c.write)
	if err != nil {
		return specText{}, err
	}
	if bytes.Count(written, stand) == len(c.out) {
		return specText{written, c.out}, nil
	}
	// A value of the spec's own looks like a stand-in.
	c.inPlace = true
	defer func() { c.inPlace = false }()
	written, err = json.Marshal(spec, c.write)
	return specText{written: written}, err
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
