package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/penstock-dev/penstock/test/cluster"
)

// read returns the objects of files, which are named from the module's root. In the place of a folder it reads the
// resources that the folder's kustomization lists.
func read(names ...string) ([]*unstructured.Unstructured, error) {
	root, err := cluster.ModuleRoot()
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, name := range names {
		files, err := resources(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("failed to read a manifest: %w", err)
			}
			decoded, err := decode(content)
			if err != nil {
				return nil, fmt.Errorf("failed to decode %s: %w", file, err)
			}
			objects = append(objects, decoded...)
		}
	}
	return objects, nil
}

// resources are the files of a kustomization, or the file itself.
func resources(path string) ([]string, error) {
	if filepath.Ext(path) != "" {
		return []string{path}, nil
	}
	content, err := os.ReadFile(filepath.Join(path, "kustomization.yaml"))
	if err != nil {
		return nil, fmt.Errorf("failed to read a kustomization: %w", err)
	}
	var kustomization struct {
		Resources []string `json:"resources"`
	}
	if err := sigsyaml.Unmarshal(content, &kustomization); err != nil {
		return nil, fmt.Errorf("failed to decode the kustomization of %s: %w", path, err)
	}
	var files []string
	for _, resource := range kustomization.Resources {
		files = append(files, filepath.Join(path, resource))
	}
	return files, nil
}

// decode returns the objects of a file of several YAML documents.
func decode(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
