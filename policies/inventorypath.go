package policies

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxInventoryPath bounds what is followed of a value.
const maxInventoryPath = 32

// inventoryPath is a path below data.inventory; anyMember where the Rego does
// not say.
type inventoryPath []string

func (p inventoryPath) key() string { return strings.Join(p, "\x00") }

func (p inventoryPath) then(more ...string) inventoryPath {
	return append(slices.Clip(p), more...)
}

// inventoryRead is what a rule reads at one place.
type inventoryRead struct {
	// apiVersion and kind may be anyMember.
	apiVersion string
	kind       string
	path       []string
	// whole is false when all that matters is whether there is a value.
	whole bool
	at    *ast.Location
}

// kindAt is where the kind stands in a path: behind cluster and the
// apiVersion, or behind namespace, its name and the apiVersion.
func (p inventoryPath) kindAt() int {
	if len(p) > 0 && p[0] == "cluster" {
		return 2
	}
	return 3
}

// read says what is read when the value at a path is, all of it or only whether
// it is there.
func (p inventoryPath) read(whole bool, at *ast.Location) inventoryRead {
	read := inventoryRead{apiVersion: anyMember, kind: anyMember, whole: whole, at: at}
	if len(p) == 0 || p[0] == anyMember {
		return read
	}
	kind := p.kindAt()
	if len(p) >= kind {
		read.apiVersion = p[kind-1]
	}
	if len(p) > kind {
		read.kind = p[kind]
	}
	if len(p) > kind+2 {
		read.path = p[kind+2:]
	}
	return read
}

// of reports whether objects of a kind may be read.
func (r inventoryRead) of(kind schema.GroupVersionKind) bool {
	return (r.kind == anyMember || r.kind == kind.Kind) &&
		(r.apiVersion == anyMember || r.apiVersion == kind.GroupVersion().String())
}

// misplaced reports whether a read has the layout wrong, by what it takes for an
// apiVersion and a kind: such as v1 and Node, and not Node and v1.
func (r inventoryRead) misplaced() bool {
	version, kind := r.apiVersion[strings.LastIndex(r.apiVersion, "/")+1:], r.kind
	return r.apiVersion != anyMember && !apiVersion.MatchString(version) ||
		r.kind != anyMember && (kind == "" || kind[0] < 'A' || kind[0] > 'Z')
}

// apiVersion is how the versions of Kubernetes are called.
var apiVersion = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// unnamed says what to do about a read of a kind that spec.inventory does not name.
func (r inventoryRead) unnamed() string {
	place := ""
	if r.at != nil {
		place = fmt.Sprintf(" at %d:%d", r.at.Row, r.at.Col)
	}
	switch {
	case r.misplaced():
		return fmt.Sprintf("the rule reads the inventory%s as if %s were an apiVersion and %s a kind: write data.inventory.cluster[apiVersion][kind][name], "+
			"or data.inventory.namespace[namespace][apiVersion][kind][name]", place, r.apiVersion, r.kind)
	case r.kind == anyMember:
		return fmt.Sprintf("the rule reads data.inventory%s: name the kinds that it reads, each with its apiVersion", place)
	case r.apiVersion == anyMember:
		return fmt.Sprintf("the rule reads objects of kind %s%s: add {apiVersion: …, kind: %s}", r.kind, place, r.kind)
	}
	return fmt.Sprintf("the rule reads objects of kind %s%s: add {apiVersion: %s, kind: %s}", r.kind, place, r.apiVersion, r.kind)
}
