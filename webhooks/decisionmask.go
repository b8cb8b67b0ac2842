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

	"github.com/penstock-dev/penstock/policies/secrets"
)

// redacted is what stands for a value that is masked.
const redacted = "**REDACTED**"

// Mask says what of a request is not to be written. Values of Secrets never are,
// nor what explanations of policies hide as a secret, nor the record of kubectl
// apply, which is a copy of the object.
type Mask struct {
	// Env is for names of environment variables whose values are masked.
	Env *regexp.Regexp
	// erased are pointers to what is left out, in segments, those of alwaysErased
	// first.
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
	hider
	// named are the masked values that are known to be secrets, without those that
	// may mean another thing elsewhere.
	named hider
}

// apply adds the objects of a request to its input, and masks it.
func (m Mask) apply(input map[string]any, request *admissionv1.AdmissionRequest) (*maskedInput, error) {
	done := &maskedInput{input: input}
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
	always := min(len(alwaysErased), len(m.erased))
	for _, segments := range m.erased[:always] {
		done.erase("/input", input, segments)
	}
	for _, name := range []string{"object", "oldObject"} {
		if m.Env != nil {
			done.maskEnv("/input/"+name, input[name], m.Env)
		}
		done.maskSecrets("/input/"+name, input[name])
	}
	// Only now are all secrets known.
	for _, name := range []string{"object", "oldObject"} {
		done.maskCopies("/input/"+name, input[name], false)
	}
	// What is left out besides may hold secrets that rules quote, too.
	for _, segments := range m.erased[always:] {
		done.erase("/input", input, segments)
	}
	done.masked = slices.DeleteFunc(done.masked, func(masked string) bool {
		return slices.ContainsFunc(done.erased, func(erased string) bool { return strings.HasPrefix(masked+"/", erased+"/") })
	})
	slices.Sort(done.erased)
	slices.Sort(done.masked)
	done.masked = slices.Compact(done.masked)
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
	if value, ok := members[name].(string); ok {
		d.add(value)
		if called, _ := members["name"].(string); name != "value" || secrets.Named(called) {
			d.addNamed(value)
		}
		for _, part := range secrets.Parts(value) {
			d.addNamed(value[part[0]:part[1]])
		}
	}
	members[name] = redacted
	d.masked = append(d.masked, path)
}

// addNamed has a secret hidden wherever it stands, and what it may be made of.
func (d *maskedInput) addNamed(secret string) {
	for _, one := range append(secrets.Pieces(secret), secret) {
		if !secrets.Ordinary(one) {
			d.add(one)
			d.named.add(one)
		}
	}
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

// maskSecrets masks what explanations of policies hide, too: members and variables
// that are named as secrets are, and arguments and parts of texts that hold one.
func (d *maskedInput) maskSecrets(path string, at any) {
	switch value := at.(type) {
	case map[string]any:
		called, _ := value["name"].(string)
		for name, member := range value {
			below := path + "/" + escaped(name)
			text, isText := member.(string)
			switch {
			case !isText:
				d.maskSecrets(below, member)
			case text == redacted || text == "":
			case secrets.Named(name), name == "value" && secrets.Named(called):
				d.mask(below, value, name)
			default:
				value[name] = d.maskParts(below, text)
			}
		}
	case []any:
		before := ""
		for i, element := range value {
			below := path + "/" + strconv.Itoa(i)
			text, isText := element.(string)
			if !isText {
				d.maskSecrets(below, element)
			} else if parts := secrets.After(before, text); len(parts) > 0 {
				value[i] = d.maskAt(below, text, parts)
			} else {
				value[i] = d.maskParts(below, text)
			}
			before = text
		}
	}
}

// maskParts masks the secrets within a text.
func (d *maskedInput) maskParts(path, text string) string {
	return d.maskAt(path, text, secrets.Parts(text))
}

func (d *maskedInput) maskAt(path, text string, parts [][2]int) string {
	if len(parts) == 0 {
		return text
	}
	var shown strings.Builder
	end := 0
	for _, part := range parts {
		secret := text[part[0]:part[1]]
		d.add(secret)
		d.addNamed(secret)
		shown.WriteString(text[end:part[0]] + redacted)
		end = part[1]
	}
	d.masked = append(d.masked, path)
	return shown.String() + text[end:]
}

// holdCopies are the members in whose texts any masked value may stand once more. In
// others a value that is not known to be a secret is most likely a word that means
// something else there.
var holdCopies = []string{"args", "command", "startParams", "rayStartParams", "entrypoint"}

// maskCopies takes masked values out of commands and their arguments, and secrets out
// of all texts; within says that at is a part of a command.
func (d *maskedInput) maskCopies(path string, at any, within bool) {
	replace := func(below string, member any, within bool, set func(string)) {
		text, isText := member.(string)
		if !isText {
			d.maskCopies(below, member, within)
			return
		}
		held := &d.named
		if within {
			held = &d.hider
		}
		if shown := held.replace(text); shown != text {
			set(shown)
			d.masked = append(d.masked, below)
		}
	}
	switch value := at.(type) {
	case map[string]any:
		for name, member := range value {
			replace(path+"/"+escaped(name), member, within || slices.Contains(holdCopies, name), func(shown string) { value[name] = shown })
		}
	case []any:
		for i, element := range value {
			replace(path+"/"+strconv.Itoa(i), element, within, func(shown string) { value[i] = shown })
		}
	}
}

// escaped is a name as a segment of a JSON pointer.
func escaped(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
