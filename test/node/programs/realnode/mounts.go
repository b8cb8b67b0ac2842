package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// privateDirs are where the node's programs keep state at fixed places. The node
// has them for itself, empty and in memory. In libDir are more, which few hosts
// have; see mountLib.
var privateDirs = []string{"/run", "/var/log"}

const libDir = "/var/lib"

var privateLibs = []string{"cni", "kubelet"}

// inMemory are the options of a folder in memory. Pods may ask for more storage
// than the machine has memory; they do not use it.
const inMemory = "mode=0755,size=64g"

// stateDir holds all other state of the node's programs. It is below a private
// folder, so it exists inside only and goes with the node.
const stateDir = "/run/node"

// mountAll gives the node its own view of files.
func mountAll() error {
	trees, err := hierarchies()
	if err != nil {
		return err
	}
	// What is mounted from here on is seen by nobody else.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("failed to make mounts private: %w", err)
	}
	// Of the node's own processes and network.
	for _, m := range []struct{ kind, at string }{{"proc", "/proc"}, {"sysfs", "/sys"}} {
		if err := mountAt(m.kind, m.at, ""); err != nil {
			return err
		}
	}
	if err := mountGroups(trees); err != nil {
		return err
	}
	for _, dir := range privateDirs {
		if err := mountAt("tmpfs", dir, inMemory); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(stateDir, 0o755); err != nil {
		return err
	}
	return mountLib()
}

// mountLib puts a folder in the place of libDir that has the same in it, but for
// the node's own. To mount over folders on the host would mean to make them
// there, and to leave them.
func mountLib() error {
	host := filepath.Join(stateDir, "lib")
	if err := os.Mkdir(host, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(libDir, host, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("failed to bind %s: %w", libDir, err)
	}
	if err := mountAt("tmpfs", libDir, inMemory); err != nil {
		return err
	}
	entries, err := os.ReadDir(host)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() && !slices.Contains(privateLibs, entry.Name()) {
			at := filepath.Join(libDir, entry.Name())
			if err := os.Mkdir(at, 0o755); err != nil {
				return err
			}
			if err := unix.Mount(filepath.Join(host, entry.Name()), at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
				return fmt.Errorf("failed to bind %s: %w", at, err)
			}
		}
	}
	for _, name := range privateLibs {
		if err := os.Mkdir(filepath.Join(libDir, name), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// mountGroups mounts the cgroups as the host has them, as far as the node's
// namespace goes.
func mountGroups(trees []hierarchy) error {
	const root = "/sys/fs/cgroup"
	if len(trees) > 1 || trees[0].mountPoint != root {
		if err := mountAt("tmpfs", root, "mode=0755"); err != nil {
			return err
		}
	}
	for _, tree := range trees {
		at := tree.mountPoint
		if inside, err := filepath.Rel(root, at); err != nil || inside == ".." || strings.HasPrefix(inside, "../") {
			at = filepath.Join(root, filepath.Base(at))
		}
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := mountAt(tree.kind, at, tree.options); err != nil {
			return err
		}
		if tree.kind == "cgroup2" {
			if err := leaveRoot(at); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaveRoot moves this process, and so all that it starts, into a leaf: in
// version 2 a group that has processes cannot hand controllers on.
func leaveRoot(at string) error {
	leaf := filepath.Join(at, "node")
	if err := os.Mkdir(leaf, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte("0"), 0o644); err != nil {
		return fmt.Errorf("failed to move the node into a leaf of its cgroup: %w", err)
	}
	return delegate(at)
}

func mountAt(kind, at, options string) error {
	if err := unix.Mount(kind, at, kind, unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("failed to mount %s (%s) at %s: %w", kind, options, at, err)
	}
	return nil
}
