package conversion

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// hubVersion is the version that all others convert to and that is stored.
const hubVersion = "v1"

// A spoke converts the spec of one kind between v1 and one other version.
type spoke struct {
	version string
	up      *half
	down    *half
	paths   fieldTable
}

// half is the direction from the version to v1 (up), or from v1.
func (s *spoke) half(up bool) *half {
	if up {
		return s.up
	}
	return s.down
}

// A half is one direction of a spoke over the JSON of specs.
type half struct {
	// read decodes the spec that comes next, an object. The error is that of the
	// first value that the Go type of the source cannot hold; there may be more
	// to read of the spec then.
	read func(in *scanner) (source, error)
}

// A source is a spec that was decoded, to be converted.
type source interface {
	// convert gives the converted spec, and whether converting it back gives
	// exactly what was read again.
	convert() (converted specText, exact bool, err error)
}

// convert reads and converts the JSON of a spec.
func (h *half) convert(raw []byte) (converted specText, exact bool, err error) {
	in := newScanner(raw)
	defer in.free()
	src, err := h.read(in)
	if err != nil {
		return specText{}, false, err
	}
	return src.convert()
}

// fits gives the error of the first value in the JSON of a spec that the Go type
// of the source cannot hold.
func (h *half) fits(raw []byte) error {
	in := newScanner(raw)
	defer in.free()
	_, err := h.read(in)
	return err
}

// A kind is everything that conversion knows of one kind.
type kind struct {
	groupKind schema.GroupKind
	spokes    map[string]*spoke
}

// kinds are all kinds that have more than one version.
var kinds = map[schema.GroupKind]*kind{
	v1.RayClusterGroupKind: {
		groupKind: v1.RayClusterGroupKind,
		spokes:    map[string]*spoke{"v1alpha1": rayClusterV1alpha1},
	},
	v1.TrainingJobGroupKind: {
		groupKind: v1.TrainingJobGroupKind,
		spokes:    map[string]*spoke{"v1alpha1": trainingJobV1alpha1},
	},
}

// newSpoke makes a spoke of two typed functions over specs. Both must be pure
// and total, and must not change their source. The other two empty a spec for
// it to be used again; they may leave room in its lists.
func newSpoke[Hub, Spoke any](
	version string, toHub func(*Spoke, *Hub), fromHub func(*Hub, *Spoke),
	emptyHub func(*Hub), emptySpoke func(*Spoke), paths fieldTable,
) *spoke {
	hubs, spokes := newSpare(emptyHub), newSpare(emptySpoke)
	return &spoke{
		version: version,
		up:      newHalf(toHub, fromHub, hubs, spokes),
		down:    newHalf(fromHub, toHub, spokes, hubs),
		paths:   paths,
	}
}

func newHalf[Src, Dst any](forth func(*Src, *Dst), back func(*Dst, *Src), destinations *spare[Dst], roundTrips *spare[Src]) *half {
	return &half{read: func(in *scanner) (source, error) {
		src := &typedSource[Src, Dst]{forth: forth, back: back, destinations: destinations, roundTrips: roundTrips}
		var err error
		src.carried, src.whole, err = in.spec(&src.spec)
		return src, err
	}}
}

// A typedSource is the spec of a Go type.
type typedSource[Src, Dst any] struct {
	spec    Src
	carried carriedTexts
	// whole tells that the two hold all that was read.
	whole bool
	forth func(*Src, *Dst)
	back  func(*Dst, *Src)

	destinations *spare[Dst]
	roundTrips   *spare[Src]
}

// spare holds specs that are used again, since they live for one conversion and
// are large.
type spare[T any] struct {
	pool  sync.Pool
	empty func(*T)
}

func newSpare[T any](empty func(*T)) *spare[T] {
	return &spare[T]{pool: sync.Pool{New: func() any { return new(T) }}, empty: empty}
}

func (s *spare[T]) get() *T { return s.pool.Get().(*T) }

func (s *spare[T]) put(spec *T) {
	s.empty(spec)
	s.pool.Put(spec)
}

func (s *typedSource[Src, Dst]) convert() (specText, bool, error) {
	// After a panic they are not used again: nobody knows what is in them.
	dst := s.destinations.get()
	s.forth(&s.spec, dst)
	exact := s.whole
	if exact {
		again := s.roundTrips.get()
		s.back(dst, again)
		exact = equalSpecs(reflect.ValueOf(&s.spec), reflect.ValueOf(again))
		s.roundTrips.put(again)
	}
	converted, err := encodeSpec(dst, s.carried)
	s.destinations.put(dst)
	return converted, exact, err
}
