package policies

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// A policy is cut between two expressions, not within a builtin. So those
// builtins whose one call may take memory or time out of proportion are asked
// first what they are about to do, and those that go through a text by a regular
// expression are made to stop on the way.
const (
	// maxBuilt is how many bytes one call may build: several times what an API
	// server accepts as an object.
	maxBuilt = 16 << 20
	// maxTaken is how long a text may be that is taken to pieces: each costs
	// tens of bytes.
	maxTaken = 4 << 20
	// maxElements is how many elements one call may put into a list, or compare.
	maxElements = 1 << 20
	// maxDigits is how long a number may be that is computed with.
	maxDigits = 1 << 12
	// maxSteps is how many steps a regular expression may take that cannot be
	// stopped: its instructions for each byte, about a tenth of a second.
	maxSteps = 10 << 20
)

// memoryCode marks errors of what takes too much memory or time.
const memoryCode = "penstock_memory_error"

// bounds give an error for a call that would do too much.
var bounds = map[string]func(operands []*ast.Term) error{
	"array.concat":                     func(o []*ast.Term) error { return atMost(maxElements, "elements", sizeOf(o[0]), sizeOf(o[1])) },
	"concat":                           func(o []*ast.Term) error { return boundConcat(o[0], o[1]) },
	"sprintf":                          func(o []*ast.Term) error { return boundFormat(o[0], o[1]) },
	"internal.template_string":         func(o []*ast.Term) error { return boundText(o[0], 1) },
	"replace":                          func(o []*ast.Term) error { return boundReplace(o[0], o[1], o[2]) },
	"strings.replace_n":                func(o []*ast.Term) error { return boundReplaceAll(o[0], o[1]) },
	"hex.encode":                       func(o []*ast.Term) error { return boundText(o[0], 2) },
	"base64.encode":                    func(o []*ast.Term) error { return boundText(o[0], 2) },
	"base64url.encode":                 func(o []*ast.Term) error { return boundText(o[0], 2) },
	"base64url.encode_no_pad":          func(o []*ast.Term) error { return boundText(o[0], 2) },
	"urlquery.encode":                  func(o []*ast.Term) error { return boundText(o[0], 3) },
	"urlquery.encode_object":           func(o []*ast.Term) error { return boundText(o[0], 3) },
	"json.marshal":                     func(o []*ast.Term) error { return boundText(o[0], 1) },
	"json.marshal_with_options":        func(o []*ast.Term) error { return boundIndented(o[0], o[1]) },
	"yaml.marshal":                     func(o []*ast.Term) error { return boundText(o[0], 2) },
	"json.unmarshal":                   boundTaken,
	"yaml.unmarshal":                   boundTaken,
	"split":                            boundTaken,
	"strings.split_n":                  boundTaken,
	"indexof_n":                        boundTaken,
	"json.patch":                       func(o []*ast.Term) error { return boundPairs(o[0], o[1]) },
	"net.cidr_contains_matches":        func(o []*ast.Term) error { return boundPairs(o[0], o[1]) },
	"strings.any_prefix_match":         func(o []*ast.Term) error { return atMost(maxElements, "elements", sizeOf(o[0]), sizeOf(o[1])) },
	"strings.any_suffix_match":         func(o []*ast.Term) error { return atMost(maxElements, "elements", sizeOf(o[0]), sizeOf(o[1])) },
	"plus":                             boundDigits,
	"minus":                            boundDigits,
	"mul":                              boundDigits,
	"div":                              boundDigits,
	"rem":                              boundDigits,
	"product":                          func(o []*ast.Term) error { return boundProduct(o[0]) },
	"to_number":                        boundDigits,
	"units.parse":                      boundDigits,
	"units.parse_bytes":                boundDigits,
	"format_int":                       boundDigits,
	"abs":                              boundDigits,
	"floor":                            boundDigits,
	"ceil":                             boundDigits,
	"round":                            boundDigits,
	"regex.split":                      func(o []*ast.Term) error { return boundRegex(o[0], o[1]) },
	"regex.find_n":                     func(o []*ast.Term) error { return boundRegex(o[0], o[1]) },
	"regex.find_all_string_submatch_n": func(o []*ast.Term) error { return boundRegex(o[0], o[1]) },
	"regex.replace":                    func(o []*ast.Term) error { return boundRegexReplace(o[0], o[1], o[2]) },
	"regex.template_match":             func(o []*ast.Term) error { return boundRegex(o[0], o[1]) },
}

// Builtins are looked up by name in one table of the process, and it is written
// before anything reads it: while packages are initialised.
func init() {
	for name, bound := range bounds {
		builtin := topdown.GetBuiltin(name)
		topdown.RegisterBuiltinFunc(name, func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
			if err := bound(operands); err != nil {
				return tooMuch(name, err)
			}
			return builtin(bctx, operands, iter)
		})
	}
	for _, name := range []string{"regex.match", "re_match"} {
		builtin := topdown.GetBuiltin(name)
		topdown.RegisterBuiltinFunc(name, func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
			if boundRegex(operands[0], operands[1]) == nil {
				return builtin(bctx, operands, iter)
			}
			return matchStoppably(bctx, operands, iter)
		})
	}
}

// tooMuch ends the evaluation. Any other error of a builtin would only make the
// call undefined, and so let the object pass.
func tooMuch(builtin string, err error) error {
	return topdown.Halt{Err: &topdown.Error{Code: memoryCode, Message: builtin + " " + err.Error()}}
}

// atMost gives an error if parts are more than limit together.
func atMost(limit int, of string, parts ...int) error {
	sum := 0
	for _, part := range parts {
		if sum += part; part > limit || sum > limit {
			return fmt.Errorf("would make more than %d %s", limit, of)
		}
	}
	return nil
}

// boundText bounds a text that is made of a value, each byte of which may become
// several.
func boundText(value *ast.Term, factor int) error {
	if writtenSize(value, maxBuilt/factor) < 0 {
		return fmt.Errorf("would make more than %d bytes", maxBuilt)
	}
	return nil
}

// writtenSize is about how many bytes a value takes as text, -1 if that is more
// than limit. Values that hold others many times, which take no memory for it,
// are as long as if each was one of its own.
func writtenSize(value *ast.Term, limit int) int {
	left := limit
	var take func(term *ast.Term) bool
	take = func(term *ast.Term) bool {
		left -= 2
		switch value := term.Value.(type) {
		case ast.String:
			left -= len(value)
		case ast.Number:
			left -= len(value)
		case *ast.Array:
			return left < 0 || value.Until(take)
		case ast.Set:
			return left < 0 || value.Until(take)
		case ast.Object:
			return left < 0 || value.Until(func(key, member *ast.Term) bool { return take(key) || take(member) })
		}
		return left < 0
	}
	if take(value) {
		return -1
	}
	return limit - left
}

func boundConcat(separator, list *ast.Term) error {
	if err := atMost(maxElements, "parts", sizeOf(list)); err != nil {
		return err
	}
	if size := writtenSize(list, maxBuilt); size < 0 || size+sizeOf(list)*len(textOf(separator)) > maxBuilt {
		return fmt.Errorf("would make more than %d bytes", maxBuilt)
	}
	return nil
}

// boundFormat bounds the text that a format makes: its values, the format
// itself, and the widths that it asks for.
func boundFormat(format, values *ast.Term) error {
	text := textOf(format)
	if err := boundText(values, 2); err != nil {
		return err
	}
	width, given := 0, 0
	for i := 0; i < len(text); i++ {
		if text[i] < '0' || text[i] > '9' {
			continue
		}
		end := i
		for end < len(text) && text[end] >= '0' && text[end] <= '9' {
			end++
		}
		given, _ = strconv.Atoi(text[i:end])
		width, i = width+min(given, maxBuilt), end
		if width > maxBuilt {
			break
		}
	}
	// A star takes its width from the values; each is a million at most.
	stars := strings.Count(text, "*")
	return atMost(maxBuilt, "bytes", len(text), width, min(stars, maxBuilt>>20+1)<<20)
}

func boundReplace(text, pattern, value *ast.Term) error {
	from, to := textOf(pattern), textOf(value)
	if len(to) <= len(from) {
		return boundText(text, 1)
	}
	return atMost(maxBuilt, "bytes", len(textOf(text)), strings.Count(textOf(text), from)*(len(to)-len(from)))
}

func boundReplaceAll(patterns, text *ast.Term) error {
	object, ok := patterns.Value.(ast.Object)
	if !ok {
		return nil
	}
	parts := []int{len(textOf(text))}
	object.Foreach(func(pattern, value *ast.Term) {
		parts = append(parts, strings.Count(textOf(text), textOf(pattern))*len(textOf(value)))
	})
	return atMost(maxBuilt, "bytes", parts...)
}

func boundIndented(value, options *ast.Term) error {
	factor := 1
	if object, ok := options.Value.(ast.Object); ok {
		for _, name := range []string{"prefix", "indent"} {
			if text := object.Get(ast.StringTerm(name)); text != nil {
				factor += len(textOf(text))
			}
		}
	}
	return boundText(value, min(factor, maxBuilt))
}

// boundTaken bounds the text that is the first operand.
func boundTaken(operands []*ast.Term) error {
	if size := len(textOf(operands[0])); size > maxTaken {
		return fmt.Errorf("is given %d bytes, and takes at most %d to pieces", size, maxTaken)
	}
	return nil
}

// boundPairs bounds two collections, each element of which meets each of the
// other.
func boundPairs(a, b *ast.Term) error {
	if left, right := max(sizeOf(a), 1), max(sizeOf(b), 1); left > 10*maxElements/right {
		return fmt.Errorf("would go through %d elements for each of %d", left, right)
	}
	return nil
}

// boundDigits bounds the operands that are numbers, or texts of such.
func boundDigits(operands []*ast.Term) error {
	for _, operand := range operands {
		size := 0
		switch value := operand.Value.(type) {
		case ast.Number:
			size = len(value)
		case ast.String:
			size = len(value)
		}
		if size > maxDigits {
			return fmt.Errorf("is given a number of %d digits, and computes with at most %d", size, maxDigits)
		}
	}
	return nil
}

func boundProduct(list *ast.Term) error {
	if size := writtenSize(list, 10*maxDigits); size < 0 {
		return fmt.Errorf("is given numbers of more than %d digits in all", 10*maxDigits)
	}
	return nil
}

// boundRegex bounds what a regular expression does to a text.
func boundRegex(pattern, text *ast.Term) error {
	size, length := len(textOf(text)), len(textOf(pattern))
	if size > maxTaken {
		return fmt.Errorf("is given %d bytes, and takes at most %d to pieces", size, maxTaken)
	}
	// A repetition of a few characters is up to a thousand instructions.
	if size <= maxSteps/10_000 && length < 1000 {
		return nil
	}
	instructions := instructionsOf(textOf(pattern))
	if size > maxSteps/instructions {
		return fmt.Errorf("would try %d instructions of a regular expression for each of %d bytes", instructions, size)
	}
	return nil
}

func boundRegexReplace(text, pattern, value *ast.Term) error {
	if err := boundRegex(pattern, text); err != nil {
		return err
	}
	size, added := len(textOf(text)), len(textOf(value))
	if size > 0 && added > 4*maxBuilt/size {
		return fmt.Errorf("would put %d bytes into each place of %d", added, size)
	}
	return nil
}

// matchStoppably is regex.match for a text that would take long: it ends when
// the policy is cut.
func matchStoppably(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
	pattern, isPattern := operands[0].Value.(ast.String)
	text, isText := operands[1].Value.(ast.String)
	if !isPattern || !isText {
		return nil
	}
	compiled, err := regexp.Compile(string(pattern))
	if err != nil {
		return err
	}
	reader := &stoppableReader{text: string(text), cancel: bctx.Cancel}
	found := compiled.MatchReader(reader)
	if reader.stopped {
		return topdown.Halt{Err: &topdown.Error{Code: topdown.CancelErr, Message: "regex.match: timed out before finishing"}}
	}
	return iter(ast.InternedTerm(found))
}

// stoppableReader reads the runes of a text until it is cancelled.
type stoppableReader struct {
	text    string
	cancel  topdown.Cancel
	read    int
	stopped bool
}

// stopEvery is after how many runes a reader asks whether to stop.
const stopEvery = 64

func (r *stoppableReader) ReadRune() (found rune, size int, err error) {
	if r.read++; r.read%stopEvery == 0 && r.cancel != nil && r.cancel.Cancelled() {
		r.stopped = true
	}
	if r.stopped || r.text == "" {
		return 0, 0, io.EOF
	}
	found, size = utf8.DecodeRuneInString(r.text)
	r.text = r.text[size:]
	return found, size, nil
}
