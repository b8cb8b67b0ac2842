// Package convert turns manifests of one version, or of an upstream kind, into
// those of another: penstock convert. In the order of the work, the files are:
//
//   - convert.go: one object, and what of it has no home in the other version;
//   - write.go: what is written, as YAML or JSON.
package convert
