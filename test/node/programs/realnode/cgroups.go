package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// groupPrefix is followed by the number of the process that made the group.
const groupPrefix = "penstock-node-"

// hierarchy is a mounted tree of cgroups, of version 1 or 2.
type hierarchy struct {
	mountPoint, kind, options string
}

// hierarchies reads the trees that are mounted, each once.
func hierarchies() ([]hierarchy, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var all []hierarchy
	seen := map[string]bool{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		where, what := strings.Fields(before), strings.Fields(after)
		if len(where) < 5 || len(what) < 3 || (what[0] != "cgroup" && what[0] != "cgroup2") {
			continue
		}
		h := hierarchy{mountPoint: where[4], kind: what[0], options: controllers(what[0], what[2])}
		if !seen[h.kind+h.options] {
			seen[h.kind+h.options] = true
			all = append(all, h)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no cgroups are mounted")
	}
	return all, lines.Err()
}

// controllers are those of a mount's options that tell one tree of version 1
// from another.
func controllers(kind, options string) string {
	if kind == "cgroup2" {
		return ""
	}
	var kept []string
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "rw", "ro", "xattr", "clone_children", "noprefix":
		default:
			if !strings.HasPrefix(option, "release_agent=") {
				kept = append(kept, option)
			}
		}
	}
	return strings.Join(kept, ",")
}

// groups are the node's cgroups, one in each hierarchy.
type groups []string

// makeGroups makes them, and removes those of nodes that were killed together
// with their parents.
func makeGroups() (groups, error) {
	trees, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var made groups
	for _, tree := range trees {
		sweep(tree.mountPoint)
		dir := filepath.Join(tree.mountPoint, groupPrefix+strconv.Itoa(os.Getpid()))
		if err := makeGroup(tree, dir); err != nil {
			return nil, errors.Join(fmt.Errorf("failed to make a cgroup: %w", err), made.remove())
		}
		made = append(made, dir)
	}
	return made, nil
}

func makeGroup(tree hierarchy, dir string) error {
	if tree.kind == "cgroup2" {
		// On a machine of version 1 there are none.
		if err := delegate(tree.mountPoint); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	// A new group of this controller has no processor and no memory to give.
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		content, err := os.ReadFile(filepath.Join(tree.mountPoint, file))
		if err == nil && tree.kind == "cgroup" {
			if err := os.WriteFile(filepath.Join(dir, file), content, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// delegate lets the children of a group of version 2 use all its controllers.
func delegate(dir string) error {
	offered, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	used, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(offered)) {
		if strings.Contains(" "+strings.TrimSpace(string(used))+" ", " "+name+" ") {
			continue
		}
		// Not all can be had: some are in use by tasks of real time, say.
		err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+name), 0o644)
		if err != nil && (name == "memory" || name == "pids" || name == "cpu") {
			return fmt.Errorf("failed to hand controller %s on: %w", name, err)
		}
	}
	return nil
}

func (g groups) add(pid int) error {
	for _, dir := range g {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("failed to move the node into its cgroup: %w", err)
		}
	}
	return nil
}

// remove removes the groups with all below them, once no process is left.
func (g groups) remove() error {
	var failure error
	for _, dir := range g {
		err := removeTree(dir)
		for wait := time.Millisecond; err != nil && wait < 2*time.Second; wait *= 2 {
			time.Sleep(wait)
			err = removeTree(dir)
		}
		failure = errors.Join(failure, err)
	}
	return failure
}

func removeTree(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		if err := syscall.Rmdir(dirs[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("failed to remove cgroup %s: %w", dirs[i], err)
		}
	}
	return nil
}

// sweep removes groups whose makers are gone; those of others stay.
func sweep(mountPoint string) {
	left, _ := filepath.Glob(filepath.Join(mountPoint, groupPrefix+"*"))
	for _, dir := range left {
		maker := strings.TrimPrefix(filepath.Base(dir), groupPrefix)
		if _, err := os.Stat("/proc/" + maker); errors.Is(err, fs.ErrNotExist) {
			_ = removeTree(dir)
		}
	}
}
