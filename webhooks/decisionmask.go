package webhooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
)

// redacted is what stands for a value that is masked.
const redacted = "**REDACTED**"

// shortestHidden is how long a masked value is at least for it to be taken out of
// messages too: what is shorter would take words apart.
const shortestHidden = 6

// Mask says what of a request is not to be written. Values of Secrets never are,
// nor the record of kubectl apply, which is a copy of the object.
type Mask struct {
	// Env is for names of environment variables whose values are masked.
	Env *regexp.Regexp
	// erased are pointers to what is left out, in segments.
	erased [][]string
}

// NewMask makes a mask of a pattern for names of environment variables, and of
// JSON pointers into the event to what is to be left out of it. A segment * stands for any
// member or element.
func NewMask(env string, pointers []string) (Mask, error) {
	pattern, err := regexp.Compile(env)
	if err != nil {
		return Mask{}, fmt.Errorf("failed to read the pattern of environment variables: %w", err)
	}
	mask := Mask{Env: pattern}
	for _, pointer := range append(slices.Clone(alwaysErased), pointers...) {
		segments := strings.Split(pointer, "/")
		if len(segments) < 3 || segments[0] != "" || segments[1] != "input" {
			return Mask{}, fmt.Errorf("the JSON pointer %q must begin with /input/", pointer)
		}
		for i, segment := range segments {
			segments[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)
		}
		mask.erased = append(mask.erased, segments[2:])
	}
	return mask, nil
}

var alwaysErased = []string{
	"/input/*/metadata/managedFields",
	"/input/*/metadata/annotations/" + escaped(corev1.LastAppliedConfigAnnotation),
}

// maskedInput is an input of which nothing is left that is not to be written.
type maskedInput struct {
	input          map[string]any
	erased, masked []string
	// secrets are the values that were masked.
	secrets map[string]bool
	hidden  *strings.Replacer
}

// apply adds the objects of a request to its input, and masks it.
func (m Mask) apply(input map[string]any, request *admissionv1.AdmissionRequest) (*maskedInput, error) {
	done := &maskedInput{input: input, secrets: map[string]bool{}}
	for name, raw := range map[string][]byte{"object": request.Object.Raw, "oldObject": request.OldObject.Raw} {
		if isAbsent(raw) {
			continue
		}
		object, err := decodeExact(raw)
		if err != nil {
			return nil, err
		}
		input[name] = object
		if request.Kind.Group == "" && request.Kind.Kind == "Secret" {
			done.maskSecret("/input/"+name, object)
		}
	}
	for _, segments := range m.erased {
		done.erase("/input", input, segments)
	}
	if m.Env != nil {
		for _, name := range []string{"object", "oldObject"} {
			done.maskEnv("/input/"+name, input[name], m.Env)
		}
	}
	slices.Sort(done.erased)
	slices.Sort(done.masked)
	return done, nil
}

// decodeExact decodes JSON into plain values whose numbers keep their digits.
func decodeExact(raw []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, errors.New("an object is not JSON") // the error would quote it
	}
	return object, nil
}

// maskSecret masks what rules do not see of a Secret either.
func (d *maskedInput) maskSecret(path string, object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	for at, members := range map[string]any{
		"/data": object["data"], "/stringData": object["stringData"], "/metadata/annotations": metadata["annotations"],
	} {
		values, _ := members.(map[string]any)
		for name := range values {
			d.mask(path+at+"/"+escaped(name), values, name)
		}
	}
}

func (d *maskedInput) mask(path string, members map[string]any, name string) {
	if value, ok := members[name].(string); ok && value != redacted && len(value) >= shortestHidden {
		d.secrets[value] = true
	}
	members[name] = redacted
	d.masked = append(d.masked, path)
}

// erase takes away what segments lead to.
func (d *maskedInput) erase(path string, at any, segments []string) {
	last := len(segments) == 1
	switch value := at.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if segments[0] != "*" && segments[0] != name {
				continue
			}
			if below := path + "/" + escaped(name); last {
				delete(value, name)
				d.erased = append(d.erased, below)
			} else {
				d.erase(below, value[name], segments[1:])
			}
		}
	case []any:
		for i := range value {
			if segments[0] != "*" && segments[0] != strconv.Itoa(i) {
				continue
			}
			if below := path + "/" + strconv.Itoa(i); last {
				// The others keep their places, so that pointers stay right.
				value[i] = nil
				d.erased = append(d.erased, below)
			} else {
				d.erase(below, value[i], segments[1:])
			}
		}
	}
}

// maskEnv masks the values of environment variables, wherever there are some.
func (d *maskedInput) maskEnv(path string, at any, names *regexp.Regexp) {
	switch value := at.(type) {
	case map[string]any:
		for name, member := range value {
			below := path + "/" + escaped(name)
			if variables, ok := member.([]any); ok && name == "env" {
				d.maskVariables(below, variables, names)
			}
			d.maskEnv(below, member, names)
		}
	case []any:
		for i, element := range value {
			d.maskEnv(path+"/"+strconv.Itoa(i), element, names)
		}
	}
}

func (d *maskedInput) maskVariables(path string, variables []any, names *regexp.Regexp) {
	for i, element := range variables {
		variable, _ := element.(map[string]any)
		name, _ := variable["name"].(string)
		if _, given := variable["value"]; given && names.MatchString(name) {
			d.mask(path+"/"+strconv.Itoa(i)+"/value", variable, "value")
		}
	}
}

// hide takes what was masked out of what a rule says: it may quote it.
func (d *maskedInput) hide(text string) string {
	if len(d.secrets) == 0 {
		return text
	}
	if d.hidden == nil {
		var pairs []string
		// The longest first, as one may be a part of another.
		for _, secret := range slices.SortedFunc(maps.Keys(d.secrets), func(a, b string) int { return len(b) - len(a) }) {
			pairs = append(pairs, secret, redacted)
		}
		d.hidden = strings.NewReplacer(pairs...)
	}
	return d.hidden.Replace(text)
}

// escaped is a name as a segment of a JSON pointer.
func escaped(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
