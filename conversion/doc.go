// Package conversion is the normaliser: step 2 of the flow. It turns the
// shapes that people write (v1alpha1, and the upstream kinds whose shape
// v1alpha1 takes) into v1, the normal form, and back.
//
// For each kind there is one file with two typed functions over the specs, and
// one table that pairs their fields. Everything else is shared:
//
//   - handler.go answers the API server's ConversionReview;
//   - convert.go converts one object, which rawobject.go reads and writes with
//     its parts as bytes, and annotation.go changes the one annotation of;
//   - kind.go lists the kinds, and codec.go reads and writes their specs with
//     pod templates carried as bytes: the fast path; equal.go tells whether it
//     lost nothing;
//   - exact.go is the careful path, over the JSON values of tree.go, for
//     whatever a Go type cannot hold, and restore.go keeps what one version
//     cannot say, so that it can come back;
//   - lost.go tells what has no home in v1, for manifests that stay there;
//   - path.go maps the path of a field from one version to another;
//   - upstream.go takes upstream's own objects for ours.
//
// v1 is called the hub, and every other version a spoke: there are converters
// between a spoke and the hub only.
//
// Conversion runs before any schema was checked. It is pure, total and
// deterministic: it has no client, no clock and no defaults, fragments and
// ill-typed values pass through it, and what comes back is what went in. It
// may import the two API packages and nothing else of the project.
package conversion
