package conversion

import (
	"errors"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
)

// maxCuts bounds how often a spec is decoded anew because of one value that
// its Go type cannot hold; after that whole members of the spec are set aside.
const maxCuts = 32

// convertExactly converts a spec by way of trees: it carries what the Go types
// cannot hold, brings back what kept says was lost before, and gives what is
// lost now. It gives the same as half.convert for a spec that this converts
// exactly, at several times the cost.
func (s *spoke) convertExactly(raw []byte, kept string, up bool) (spec []byte, lost string, err error) {
	var src tree
	if raw != nil {
		if src, err = parseTree(raw); err != nil {
			return nil, "", err
		}
	}
	dst, err := s.convertTree(src, up)
	if err != nil {
		return nil, "", err
	}
	if kept != "" {
		if dst, err = s.restore(src, dst, kept, up); err != nil {
			return nil, "", err
		}
	}
	again, err := s.convertTree(dst, !up)
	if err != nil {
		return nil, "", err
	}
	if dst != nil {
		spec = encodeTree(dst)
	}
	return spec, difference(again, src).encode(), nil
}

// convertTree converts a spec. Values that the Go type of the source cannot
// hold are set aside before and put where they belong afterwards, so that the
// API server refuses them with their path.
func (s *spoke) convertTree(src tree, up bool) (tree, error) {
	if _, ok := src.(map[string]any); !ok {
		return src, nil
	}
	half := s.half(up)
	fits, aside := setAside(src, half.fits)
	converted, _, err := half.convert(encodeTree(fits))
	if err != nil {
		return nil, err
	}
	dst, err := parseTree(converted.bytes())
	if err != nil {
		return nil, err
	}
	for _, cut := range aside {
		to := s.paths.convert(cut.at, src, up)
		if !assign(dst, to, cut.value) {
			appendMisfit(dst, to, cut.value)
		}
	}
	return dst, nil
}

// A cut is a value that was set aside, and where it was.
type cut struct {
	at    pointer
	value tree
}

// setAside gives src without the values that decode stumbles over, and these.
func setAside(src tree, decode func([]byte) error) (tree, []cut) {
	var aside []cut
	fits := src
	for {
		err := decode(encodeTree(fits))
		if err == nil {
			return fits, aside
		}
		if len(aside) == 0 {
			fits = cloneTree(src)
		}
		at := faultIn(fits, err)
		if len(aside) >= maxCuts && len(at) > 1 {
			at = at[:1]
		}
		value, ok := lookUp(fits, at)
		if len(at) == 0 || !ok || !remove(fits, at) {
			// The fault cannot be told apart from the rest: all of it is.
			return map[string]any{}, wholeMembers(fits, aside)
		}
		aside = append(aside, cut{at, value})
	}
}

func wholeMembers(fits tree, aside []cut) []cut {
	object, _ := fits.(map[string]any)
	for name, value := range object {
		aside = append(aside, cut{pointer{name}, value})
	}
	slices.SortFunc(aside, func(a, b cut) int { return slices.Compare(a.at, b.at) })
	return aside
}

// faultIn gives the member of an object that a decoder's error is about. A
// fault in a list is the list's, but for a role, which has a name.
func faultIn(src tree, err error) pointer {
	var fault *json.SemanticError
	if !errors.As(err, &fault) {
		return nil
	}
	var at pointer
	value, in := src, ""
	for name := range fault.JSONPointer.Tokens() {
		if list, ok := value.([]any); ok {
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(list) || !isRoleList(in, list) {
				return at
			}
			name, _ = roleName(in, list[i])
			value = list[i]
		} else if object, ok := value.(map[string]any); ok {
			value = object[name]
		}
		at, in = append(at, name), name
	}
	if len(at) > 0 {
		if parent, ok := lookUp(src, at[:len(at)-1]); ok {
			if _, ok := parent.([]any); ok {
				return at[:len(at)-1]
			}
		}
	}
	return at
}

// appendMisfit puts a value that stands for a whole role at the end of the
// list of roles, where no version can take it for a role.
func appendMisfit(dst tree, to pointer, value tree) {
	object, ok := dst.(map[string]any)
	if !ok || len(to) == 0 {
		return
	}
	list, _ := object[to[0]].([]any)
	object[to[0]] = append(slices.Clip(list), value)
}
