package library

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:generate go run ./generate ../../config/policies

// Manifests returns the files of config/policies by name: a manifest for each
// policy, with its Rego as a block that can be read and edited in place, and a
// kustomization of them all.
func Manifests() (map[string][]byte, error) {
	names, err := Names()
	if err != nil {
		return nil, err
	}
	manifests := map[string][]byte{}
	var resources strings.Builder
	for _, name := range names {
		manifest, err := manifestOf(name)
		if err != nil {
			return nil, fmt.Errorf("failed to make the manifest of policy %s: %w", name, err)
		}
		manifests[name+".yaml"] = manifest
		fmt.Fprintf(&resources, "- %s.yaml\n", name)
	}
	manifests["kustomization.yaml"] = []byte(generated("policies/library") +
		"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n" + resources.String())
	return manifests, nil
}

// manifestOf joins policy.yaml, which ends within spec, and policy.rego. The
// first is kept as it is written, comments and all.
func manifestOf(name string) ([]byte, error) {
	folder := Folder(name)
	read := func(file string) ([]byte, error) { return files.ReadFile(path.Join(folder, file)) }
	text, err := read("policy.yaml")
	if err != nil {
		return nil, err
	}
	if name != folder {
		pods, err := read("pods.yaml")
		if err != nil {
			return nil, err
		}
		more, err := read("pods.cel")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if text, err = Twin(folder, text, pods, more); err != nil {
			return nil, err
		}
	}
	rego, err := read("policy.rego")
	if err != nil {
		return nil, err
	}
	var manifest bytes.Buffer
	manifest.WriteString(generated("policies/library/" + folder))
	manifest.Write(text)
	manifest.WriteString("  rego: |\n")
	indent(&manifest, "    ", untabbed(string(rego)))
	return manifest.Bytes(), nil
}

// Twin writes the policy.yaml of a folder for the kinds in its pods.yaml, with
// the condition that keeps the API server from asking about other pods: it holds
// for those that ask for devices, and for those that more, an expression in CEL,
// holds for if there is one. What it takes the place of are the lines of match and
// upstreamKinds.
func Twin(folder string, text, pods, more []byte) ([]byte, error) {
	condition, err := files.ReadFile(path.Join(sharedDir, "asks-for-devices.cel"))
	if err != nil {
		return nil, err
	}
	name := "asks-for-devices"
	if len(more) > 0 {
		name += "-or-takes-them"
		condition = slices.Concat(bytes.TrimSpace(condition), []byte(" ||\n"), more)
	}
	var written bytes.Buffer
	inMatch := false
	for line := range strings.Lines(string(text)) {
		key := strings.TrimRight(line, "\n")
		switch {
		case key == "  name: "+folder:
			written.WriteString("  name: " + folder + twinSuffix + "\n")
		case key == "  match:":
			inMatch = true
			written.WriteString("  match:\n    resources:\n")
			indent(&written, "    ", string(pods))
			written.WriteString("  matchConditions:\n  - name: " + name + "\n    expression: |\n")
			indent(&written, "      ", string(condition))
		case key == "  upstreamKinds: Judge":
			inMatch = false
		case inMatch && strings.HasPrefix(line, "    "):
		default:
			inMatch = false
			written.WriteString(line)
		}
	}
	return written.Bytes(), nil
}

func indent(to *bytes.Buffer, by, text string) {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			to.WriteString(by)
		}
		to.WriteString(line)
	}
}

func generated(from string) string {
	return fmt.Sprintf("# Generated from %s; edit it there and run `go generate ./policies/library`.\n", from)
}
