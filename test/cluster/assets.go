package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrNoAssets says that a binary of the control plane is nowhere to be found.
var ErrNoAssets = errors.New(`control plane binaries are missing: run "make controlplane"`)

// Assets are the folders that hold the binaries of the control plane, the first one that has a binary wins.
type Assets struct {
	dirs []string
}

// FindAssets returns the folders to take binaries from: KUBEBUILDER_ASSETS when it is set, then test/controlplane/bin
// of the module around the working directory. The error is ErrNoAssets when they hold no API server.
func FindAssets() (Assets, error) {
	var found Assets
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		found.dirs = append(found.dirs, dir)
	}
	root, err := ModuleRoot()
	if err == nil {
		found.dirs = append(found.dirs, filepath.Join(root, "test", "controlplane", "bin"))
	}
	return found, found.require("etcd", "kube-apiserver", "kubectl")
}

// Path returns the path of one binary, for example "kubectl".
func (a Assets) Path(name string) (string, error) {
	for _, dir := range a.dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("%w (looked for %s in %s)", ErrNoAssets, name, strings.Join(a.dirs, ", "))
}

func (a Assets) require(names ...string) error {
	for _, name := range names {
		if _, err := a.Path(name); err != nil {
			return err
		}
	}
	return nil
}
