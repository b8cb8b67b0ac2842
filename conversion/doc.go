// Package conversion is the normaliser: step 2 of the flow. It turns the
// shapes that people write (v1alpha1, and the upstream kinds whose shape
// v1alpha1 takes) into v1, the normal form, and back.
//
// For each kind there is one file with two typed functions over the specs, and
// one table that pairs their fields. Everything else is shared:
//
//   - handler.go answers the API server's ConversionReview;
//   - convert.go converts one object, metadata and status carried as bytes;
//   - codec.go reads and writes specs with pod templates carried as bytes;
//   - restore.go keeps what one version cannot say, so that it can come back;
//   - exact.go is the careful path for whatever a Go type cannot hold;
//   - path.go maps the path of a field from one version to another.
//
// Conversion runs before any schema was checked. It is pure, total and
// deterministic: it has no client, no clock and no defaults, fragments and
// ill-typed values pass through it, and what comes back is what went in. It
// may import the two API packages and nothing else of the project.
package conversion
