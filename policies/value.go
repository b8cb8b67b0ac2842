package policies

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/open-policy-agent/opa/v1/ast"
)

// ParseJSON turns one JSON document into a Rego value. Numbers keep their
// digits. It fails on what is not JSON, on duplicate names and on numbers too
// large to compute with.
//
// It builds terms straight from tokens: going through Go maps, as
// ast.ValueFromReader does, costs about twice as much, and this is the largest
// part of judging a small object.
func ParseJSON(raw []byte) (ast.Value, error) {
	return parseJSON(raw, false)
}

// parseJSON is ParseJSON. With skipManagedFields, metadata.managedFields is
// left out: often a third of an object, and of no interest to nearly all rules.
func parseJSON(raw []byte, skipManagedFields bool) (ast.Value, error) {
	p := parsers.Get().(*parser)
	defer p.release()
	p.decoder.Reset(bytes.NewBuffer(raw))
	p.text = string(raw)
	p.skipManagedFields = skipManagedFields
	term, err := p.value()
	if err != nil {
		return nil, fmt.Errorf("failed to parse JSON: %w", err)
	}
	if _, err := p.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("failed to parse JSON: more than one value")
	}
	return term.Value, nil
}

// slabSize is the number of terms allocated at once.
const slabSize = 64

type parser struct {
	decoder *jsontext.Decoder
	// text is the whole document. Strings without escapes are parts of it, so
	// that they need no memory of their own.
	text string
	// slab holds terms that are allocated and not yet used.
	slab []ast.Term
	// pairs and elems are stacks of the members of the objects and arrays that
	// are still open.
	pairs [][2]*ast.Term
	elems []*ast.Term

	skipManagedFields bool
	// inMetadata is true within the top-level member metadata.
	inMetadata bool
}

// parsers are kept for their stacks and for the decoder's.
var parsers = sync.Pool{New: func() any {
	return &parser{decoder: jsontext.NewDecoder(bytes.NewReader(nil))}
}}

// release forgets the document and gives the parser back.
func (p *parser) release() {
	clear(p.pairs[:cap(p.pairs)])
	clear(p.elems[:cap(p.elems)])
	p.text, p.slab, p.inMetadata = "", nil, false
	p.pairs, p.elems = p.pairs[:0], p.elems[:0]
	p.decoder.Reset(bytes.NewReader(nil))
	parsers.Put(p)
}

func (p *parser) term(value ast.Value) *ast.Term {
	if len(p.slab) == 0 {
		p.slab = make([]ast.Term, slabSize)
	}
	term := &p.slab[0]
	p.slab = p.slab[1:]
	term.Value = value
	return term
}

func (p *parser) value() (*ast.Term, error) {
	switch kind := p.decoder.PeekKind(); kind {
	case '{':
		return p.object()
	case '[':
		return p.array()
	case '"':
		text, err := p.string()
		if err != nil {
			return nil, err
		}
		if term, ok := commonStrings[text]; ok {
			return term, nil
		}
		return p.term(ast.String(text)), nil
	case '0':
		return p.number()
	default:
		token, err := p.decoder.ReadToken()
		if err != nil {
			return nil, err
		}
		if kind == 'n' {
			return ast.InternedNullTerm, nil
		}
		return ast.InternedTerm(token.Bool()), nil
	}
}

func (p *parser) object() (*ast.Term, error) {
	if _, err := p.decoder.ReadToken(); err != nil {
		return nil, err
	}
	start := len(p.pairs)
	for p.decoder.PeekKind() == '"' {
		name, err := p.string()
		if err != nil {
			return nil, err
		}
		key, ok := commonStrings[name]
		if !ok {
			key = p.term(ast.String(name))
		}
		if p.skips(name) {
			if err := p.decoder.SkipValue(); err != nil {
				return nil, err
			}
			continue
		}
		value, err := p.value()
		if err != nil {
			return nil, err
		}
		p.pairs = append(p.pairs, [2]*ast.Term{key, value})
	}
	if _, err := p.decoder.ReadToken(); err != nil {
		return nil, err
	}
	object := p.term(ast.NewObject(p.pairs[start:]...))
	p.pairs = p.pairs[:start]
	return object, nil
}

// skips reports whether the member whose name was just read is left out.
func (p *parser) skips(name string) bool {
	switch p.decoder.StackDepth() {
	case 1:
		p.inMetadata = name == "metadata"
	case 2:
		return p.skipManagedFields && p.inMetadata && name == "managedFields"
	}
	return false
}

func (p *parser) array() (*ast.Term, error) {
	if _, err := p.decoder.ReadToken(); err != nil {
		return nil, err
	}
	start := len(p.elems)
	for {
		kind := p.decoder.PeekKind()
		if kind == ']' || kind == 0 {
			break
		}
		value, err := p.value()
		if err != nil {
			return nil, err
		}
		p.elems = append(p.elems, value)
	}
	if _, err := p.decoder.ReadToken(); err != nil {
		return nil, err
	}
	// The array keeps the slice that it is made of.
	array := p.term(ast.NewArray(append([]*ast.Term(nil), p.elems[start:]...)...))
	p.elems = p.elems[:start]
	return array, nil
}

func (p *parser) number() (*ast.Term, error) {
	raw, err := p.decoder.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(p.decoder.InputOffset())
	number, err := ast.NumberChecked(p.text[end-len(raw) : end])
	if err != nil {
		return nil, err
	}
	return p.term(number), nil
}

func (p *parser) string() (string, error) {
	raw, err := p.decoder.ReadValue()
	if err != nil {
		return "", err
	}
	end := int(p.decoder.InputOffset())
	text := p.text[end-len(raw)+1 : end-1]
	if strings.IndexByte(text, '\\') < 0 {
		return text, nil
	}
	unquoted, err := jsontext.AppendUnquote(nil, raw)
	return string(unquoted), err
}

// commonStrings are terms of names and values that nearly every object has.
// They are shared and must not be changed.
var commonStrings = internStrings(
	"apiVersion", "kind", "metadata", "spec", "status", "name", "namespace",
	"uid", "generation", "creationTimestamp", "labels", "annotations",
	"resourceVersion", "managedFields", "manager", "operation", "time",
	"fieldsType", "fieldsV1", "ownerReferences", "finalizers", "roles",
	"replicas", "restartPolicy", "template", "containers", "initContainers",
	"image", "command", "args", "env", "value", "valueFrom", "resources",
	"limits", "requests", "cpu", "memory", "nvidia.com/gpu", "volumeMounts",
	"mountPath", "volumes", "tolerations", "key", "operator", "effect",
	"nodeSelector", "ports", "containerPort", "protocol", "TCP", "Exists",
	"NoSchedule", "Always", "OnFailure", "Never", "ExitCode", "framework",
	"runPolicy", "topology", "gang", "elastic", "Master", "Worker", "Launcher",
	"imagePullPolicy", "securityContext", "affinity", "emptyDir", "medium",
	"Memory", "sizeLimit", "terminationMessagePath", "terminationMessagePolicy",
	"dnsPolicy", "schedulerName", "serviceAccountName",
	"terminationGracePeriodSeconds",
	"object", "oldObject", "user", "parameters", "review", "userInfo", "group",
	"version", "resource", "subResource", "dryRun", "options",
	"namespaceObject", "msg", "field", "fix", "main", "init", "sidecar",
)

// stringTerm is a term of a string, shared if it is a common one.
func stringTerm(text string) *ast.Term {
	if term, ok := commonStrings[text]; ok {
		return term
	}
	return ast.StringTerm(text)
}

func internStrings(texts ...string) map[string]*ast.Term {
	terms := make(map[string]*ast.Term, len(texts))
	for _, text := range texts {
		terms[text] = ast.StringTerm(text)
	}
	return terms
}
