package conversion

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// hubVersion is the version that all others convert to and that is stored.
const hubVersion = "v1"

// A spoke converts the spec of one kind between v1 and one other version.
type spoke struct {
	version string
	up      half
	down    half
	paths   fieldTable
}

// A half is one direction of a spoke over the JSON of specs.
type half struct {
	// convert gives the converted spec, and whether converting it back gives
	// exactly raw again.
	convert func(raw []byte) (converted specText, exact bool, err error)
	// decode gives the error of the first value that the Go type of the source
	// cannot hold.
	decode func(raw []byte) error
}

// A kind is everything that conversion knows of one kind.
type kind struct {
	groupKind schema.GroupKind
	spokes    map[string]*spoke
}

// kinds are all kinds that have more than one version.
var kinds = map[schema.GroupKind]*kind{
	v1.TrainingJobGroupKind: {
		groupKind: v1.TrainingJobGroupKind,
		spokes:    map[string]*spoke{"v1alpha1": trainingJobV1alpha1},
	},
}

// newSpoke makes a spoke of two typed functions over specs. Both must be pure
// and total, and must not change their source.
func newSpoke[Hub, Spoke any](version string, toHub func(*Spoke, *Hub), fromHub func(*Hub, *Spoke), paths fieldTable) *spoke {
	return &spoke{
		version: version,
		up:      newHalf(toHub, fromHub),
		down:    newHalf(fromHub, toHub),
		paths:   paths,
	}
}

func newHalf[Src, Dst any](forth func(*Src, *Dst), back func(*Dst, *Src)) half {
	return half{
		convert: func(raw []byte) (specText, bool, error) {
			var src, again Src
			var dst Dst
			exact, err := decodeSpec(raw, &src)
			if err != nil {
				return specText{}, false, err
			}
			forth(&src, &dst)
			if exact {
				back(&dst, &again)
				exact = reflect.DeepEqual(&src, &again)
			}
			converted, err := encodeSpec(&dst)
			return converted, exact, err
		},
		decode: func(raw []byte) error {
			_, err := decodeSpec(raw, new(Src))
			return err
		},
	}
}
