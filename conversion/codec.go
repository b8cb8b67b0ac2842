package conversion

import (
	"bytes"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Converters move pod templates, maps of strings and most of what has a type of
// Kubernetes; they never look into them. So their JSON is not decoded: it rides, as it was written, in one
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
	carriers := []carrier{
		carry(c, func(t *corev1.PodTemplateSpec, raw string) { t.Name = raw }, func(t corev1.PodTemplateSpec) string { return t.Name }),
		carry(c, func(m *map[string]string, raw string) { *m = map[string]string{raw: ""} }, onlyKey[string, string]),
		carry(c, func(l *amounts, raw string) { *l = amounts{corev1.ResourceName(raw): {}} }, onlyKey[corev1.ResourceName, resource.Quantity]),
		carry(c, func(m *[]autoscalingv2.MetricSpec, raw string) {
			*m = []autoscalingv2.MetricSpec{{Type: autoscalingv2.MetricSourceType(raw)}}
		}, func(m []autoscalingv2.MetricSpec) string { return string(m[0].Type) }),
		carry(c, func(r *corev1.ResourceRequirements, raw string) { r.Claims = []corev1.ResourceClaim{{Name: raw}} },
			func(r corev1.ResourceRequirements) string { return r.Claims[0].Name }),
		carry(c, func(e *[]corev1.EnvVar, raw string) { *e = []corev1.EnvVar{{Name: raw}} }, func(e []corev1.EnvVar) string { return e[0].Name }),
		carry(c, func(e *[]corev1.EnvFromSource, raw string) { *e = []corev1.EnvFromSource{{Prefix: raw}} },
			func(e []corev1.EnvFromSource) string { return e[0].Prefix }),
		carry(c, func(v *[]corev1.VolumeMount, raw string) { *v = []corev1.VolumeMount{{Name: raw}} },
			func(v []corev1.VolumeMount) string { return v[0].Name }),
		carry(c, func(s *corev1.SecurityContext, raw string) {
			s.SELinuxOptions = &corev1.SELinuxOptions{User: raw}
		}, func(s corev1.SecurityContext) string { return s.SELinuxOptions.User }),
		carry(c, func(v *corev1.EnvVarSource, raw string) {
			v.FieldRef = &corev1.ObjectFieldSelector{FieldPath: raw}
		}, func(v corev1.EnvVarSource) string { return v.FieldRef.FieldPath }),
		carry(c, func(s *corev1.ServiceSpec, raw string) { s.ClusterIP = raw }, func(s corev1.ServiceSpec) string { return s.ClusterIP }),
		carry(c, func(t *[]networkingv1.IngressTLS, raw string) { *t = []networkingv1.IngressTLS{{SecretName: raw}} },
			func(t []networkingv1.IngressTLS) string { return t[0].SecretName }),
	}
	var in []*json.Unmarshalers
	var out []*json.Marshalers
	for _, carrier := range carriers {
		in, out = append(in, carrier.in), append(out, carrier.out)
	}
	c.read = json.JoinOptions(codecOptions, json.WithUnmarshalers(json.JoinUnmarshalers(in...)))
	c.write = json.JoinOptions(codecOptions, json.WithMarshalers(json.JoinMarshalers(out...)))
	return c
}

// amounts is the type of lists of resources outside of Kubernetes' own types.
type amounts = map[corev1.ResourceName]resource.Quantity

// A carrier lets the JSON of the values of one Go type ride in them.
type carrier struct {
	in  *json.Unmarshalers
	out *json.Marshalers
}

// carry makes a carrier of the two functions that put a text into a value of a
// type and take it out. What they make of a value must not count as empty.
func carry[T any](c *codec, put func(into *T, raw string), take func(T) string) carrier {
	return carrier{
		in: json.UnmarshalFromFunc(func(dec *jsontext.Decoder, into *T) error {
			raw, err := c.carryIn(dec)
			if err == nil {
				put(into, raw)
			}
			return err
		}),
		out: json.MarshalToFunc(func(enc *jsontext.Encoder, value T) error {
			return c.carryOut(enc, take(value))
		}),
	}
}

func onlyKey[K ~string, V any](from map[K]V) string {
	for raw := range from {
		return string(raw)
	}
	return "null"
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
