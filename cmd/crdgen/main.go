// Crdgen writes the CustomResourceDefinitions that controller-gen prints to
// config/crd, without the descriptions of Kubernetes' own types.
//
// A pod template with its descriptions is some 300 kB of schema, more than
// client-side kubectl apply can keep in its annotation; controller-gen can cut
// descriptions only everywhere at once, and Penstock's own fields must stay
// readable in kubectl explain. It is part of make generate:
//
//	controller-gen crd paths=./api/... output:crd:stdout | crdgen -out config/crd
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/api/v1alpha1"
)

func main() {
	out := flag.String("out", "config/crd", "directory to write the manifests to")
	flag.Parse()
	if err := run(os.Stdin, *out); err != nil {
		fmt.Fprintln(os.Stderr, "crdgen:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out string) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{penstockv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("failed to build the scheme: %w", err)
		}
	}
	stream, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("failed to read the manifests: %w", err)
	}
	manifests, err := trim(stream, scheme)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("failed to make the directory: %w", err)
	}
	for name, manifest := range manifests {
		if err := os.WriteFile(filepath.Join(out, name), manifest, 0o644); err != nil {
			return fmt.Errorf("failed to write the manifest: %w", err)
		}
	}
	return nil
}
