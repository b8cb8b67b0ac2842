// Command generate writes config/policies from the policy library.
package main

import (
	"errors"
	"log"
	"os"
	"path/filepath"

	"github.com/penstock-dev/penstock/policies/library"
)

func main() {
	log.SetFlags(0)
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: generate DIRECTORY")
	}
	return generate(args[0])
}

// generate makes directory hold the manifests and no other YAML file.
func generate(directory string) error {
	manifests, err := library.Manifests()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	present, err := filepath.Glob(filepath.Join(directory, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range present {
		if _, wanted := manifests[filepath.Base(file)]; wanted {
			continue
		}
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	for name, manifest := range manifests {
		if err := os.WriteFile(filepath.Join(directory, name), manifest, 0o644); err != nil {
			return err
		}
	}
	return nil
}
