package conversion

import (
	"bytes"
	"errors"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/api/v1alpha1"
)

// Converters move pod templates, maps of strings and most of what has a type of
// Kubernetes; they never look into them. So their JSON is not decoded: a mark,
// the number of the text that stands for the value, rides in one string field of
// the Go value, is copied along with it, and the text is written where the mark
// comes out. That is what makes a conversion cost little more than a copy, and
// it keeps numbers and quantities in the words their author used.

// carriedTexts are the JSON values that one spec carries, each at the number of its mark.
// They are parts of the text that the spec was read from.
type carriedTexts []jsontext.Value

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
var (
	stand   = []byte(`"\u0000"`)
	standIn = jsontext.String("\x00")
)

// A codec reads and writes specs. It is used for one at a time; codecs are
// pooled because the JSON library remembers by each what it knows of Go types.
type codec struct {
	read, write json.Options

	// texts are those of the spec being read or written.
	texts carriedTexts
	// raw is the text that a spec is read from, gap where the next part of the
	// spec begins that is not carried, and marks how many marks there were in
	// those before.
	raw   []byte
	gap   int64
	marks int
	// out are the carried values of the spec being written, in order, unless
	// they are written in place.
	out     carriedTexts
	inPlace bool
}

var codecs = sync.Pool{New: func() any { return newCodec() }}

func newCodec() *codec {
	c := &codec{}
	carriers := []carrier{
		carry(c, func(t *corev1.PodTemplateSpec, number int) { t.Name = markOf(number) }, func(t corev1.PodTemplateSpec) string { return t.Name }),
		carryShared(c, func(mark string) map[string]string { return map[string]string{mark: ""} }, onlyKey[string, string]),
		carryShared(c, func(mark string) amounts { return amounts{corev1.ResourceName(mark): {}} },
			onlyKey[corev1.ResourceName, resource.Quantity]),
		carryShared(c, func(mark string) []autoscalingv2.MetricSpec {
			return []autoscalingv2.MetricSpec{{Type: autoscalingv2.MetricSourceType(mark)}}
		}, func(m []autoscalingv2.MetricSpec) string { return string(m[0].Type) }),
		carryShared(c, func(mark string) corev1.ResourceRequirements {
			return corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: mark}}}
		}, func(r corev1.ResourceRequirements) string { return r.Claims[0].Name }),
		carryShared(c, func(mark string) []corev1.EnvVar { return []corev1.EnvVar{{Name: mark}} },
			func(e []corev1.EnvVar) string { return e[0].Name }),
		carryShared(c, func(mark string) []corev1.EnvFromSource { return []corev1.EnvFromSource{{Prefix: mark}} },
			func(e []corev1.EnvFromSource) string { return e[0].Prefix }),
		carryShared(c, func(mark string) []corev1.VolumeMount { return []corev1.VolumeMount{{Name: mark}} },
			func(v []corev1.VolumeMount) string { return v[0].Name }),
		carryShared(c, func(mark string) corev1.SecurityContext {
			return corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{User: mark}}
		}, func(s corev1.SecurityContext) string { return s.SELinuxOptions.User }),
		carryShared(c, func(mark string) corev1.EnvVarSource {
			return corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: mark}}
		}, func(v corev1.EnvVarSource) string { return v.FieldRef.FieldPath }),
		carry(c, func(s *corev1.ServiceSpec, number int) { s.ClusterIP = markOf(number) }, func(s corev1.ServiceSpec) string { return s.ClusterIP }),
		carryShared(c, func(mark string) []networkingv1.IngressTLS { return []networkingv1.IngressTLS{{SecretName: mark}} },
			func(t []networkingv1.IngressTLS) string { return t[0].SecretName }),
	}
	var in []*json.Unmarshalers
	var out []*json.Marshalers
	for _, carrier := range carriers {
		in, out = append(in, carrier.in), append(out, carrier.out)
	}
	in = append(in, roomFor[v1.Role](), roomFor[v1.RayRole](), roomFor[v1alpha1.WorkerGroupSpec]())
	c.read = json.JoinOptions(codecOptions, json.WithUnmarshalers(json.JoinUnmarshalers(in...)))
	c.write = json.JoinOptions(codecOptions, json.WithMarshalers(json.JoinMarshalers(out...)))
	return c
}

// amounts is the type of lists of resources outside of Kubernetes' own types.
type amounts = map[corev1.ResourceName]resource.Quantity

// A carrier lets marks ride in the values of one Go type.
type carrier struct {
	in  *json.Unmarshalers
	out *json.Marshalers
}

// carry makes a carrier of the two functions that put the mark of a number into a
// value of a type, and take it out. What they make of a value must not count as empty.
func carry[T any](c *codec, put func(into *T, number int), take func(T) string) carrier {
	return carrier{
		in: json.UnmarshalFromFunc(func(dec *jsontext.Decoder, into *T) error {
			number, err := c.carryIn(dec)
			if err == nil {
				put(into, number)
			}
			return err
		}),
		out: json.MarshalToFunc(func(enc *jsontext.Encoder, value T) error {
			return c.carryOut(enc, take(value))
		}),
	}
}

// carryShared is carry for types whose values lead to memory of their own. The
// values with the first marks are made once and shared by all specs, which no
// converter changes.
func carryShared[T any](c *codec, hold func(mark string) T, take func(T) string) carrier {
	var holders [sharedMarks]*T
	return carry(c, func(into *T, number int) {
		if number >= len(holders) {
			*into = hold(markOf(number))
			return
		}
		if holders[number] == nil {
			holders[number] = new(hold(markOf(number)))
		}
		*into = *holders[number]
	}, take)
}

// roomFor lets lists of a type start with room for a few items: roles are a
// kilobyte each, and growing a list by one at a time copies them.
func roomFor[T any]() *json.Unmarshalers {
	return json.UnmarshalFromFunc(func(_ *jsontext.Decoder, into *[]T) error {
		if *into == nil {
			*into = make([]T, 0, 3)
		}
		return errors.ErrUnsupported // The list itself is read as any other.
	})
}

// sharedMarks is more than nearly all specs carry.
const sharedMarks = 32

var markNames = func() (names [sharedMarks]string) {
	for number := range names {
		names[number] = strconv.Itoa(number)
	}
	return names
}()

func markOf(number int) string {
	if number < len(markNames) {
		return markNames[number]
	}
	return strconv.Itoa(number)
}

func onlyKey[K ~string, V any](from map[K]V) string {
	for mark := range from {
		return string(mark)
	}
	return ""
}

// carryIn reads a value and gives the number of its mark.
func (c *codec) carryIn(dec *jsontext.Decoder) (int, error) {
	value, err := dec.ReadValue()
	if err != nil {
		return 0, err
	}
	end := dec.InputOffset()
	start := end - int64(len(value))
	c.marks += countMarks(c.raw[c.gap:start])
	c.gap = end
	c.texts = append(c.texts, c.raw[start:end])
	return len(c.texts) - 1, nil
}

// carryOut writes the value of a mark. A value that has none was made by a
// converter and is empty.
func (c *codec) carryOut(enc *jsontext.Encoder, mark string) error {
	text := jsontext.Value("null")
	if number, err := strconv.Atoi(mark); err == nil && number < len(c.texts) {
		text = c.texts[number]
	}
	if c.inPlace {
		return enc.WriteValue(text)
	}
	c.out = append(c.out, text)
	return enc.WriteToken(standIn)
}

// spec decodes the spec that comes next, an object, into a pointer to its Go
// type, and gives what it carries. It reports whether the two hold all that was
// read: they do not where there are nulls or empty values outside the parts that
// are carried, which a Go type drops.
func (s *scanner) spec(into any) (carried carriedTexts, whole bool, err error) {
	if s.dec.PeekKind() != jsontext.KindBeginObject {
		return nil, false, errNoObject
	}
	c := codecs.Get().(*codec)
	defer codecs.Put(c)
	c.raw, c.gap, c.marks = s.raw, s.dec.InputOffset(), 0
	err = json.UnmarshalDecode(s.dec, into, c.read)
	carried, c.raw, c.texts = c.texts, nil, nil
	if err != nil {
		return nil, false, err
	}
	return carried, c.marks+countMarks(s.raw[c.gap:s.dec.InputOffset()]) == 0, nil
}

// A specText is the JSON of a spec that is not put together yet, so that what
// it carries is copied once, to where it is sent from.
type specText struct {
	// written has a stand-in for each carried value.
	written []byte
	carried carriedTexts
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

// encodeSpec writes a spec, and what it carries, as JSON.
func encodeSpec(spec any, carried carriedTexts) (specText, error) {
	c := codecs.Get().(*codec)
	defer codecs.Put(c)
	c.texts, c.out = carried, make(carriedTexts, 0, len(carried))
	written, err := json.Marshal(spec, c.write)
	out := c.out
	if err == nil && bytes.Count(written, stand) != len(out) {
		// A value of the spec's own looks like a stand-in.
		c.inPlace = true
		written, err = json.Marshal(spec, c.write)
		out, c.inPlace = nil, false
	}
	c.texts, c.out = nil, nil
	if err != nil {
		return specText{}, err
	}
	return specText{written, out}, nil
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
