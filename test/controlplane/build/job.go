package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// heartbeat is how often a running build says that it is alive.
const heartbeat = 30 * time.Second

// job is one build: the command, and the hash that says what the result was built from.
type job struct {
	binary
	workDir string
	dir     string
	args    []string
	hash    string
}

// prepare reads the module files and works out the build command of a binary.
func prepare(root, dir string, b binary) (*job, error) {
	workDir := filepath.Join(root, b.folder)
	mod, err := os.ReadFile(filepath.Join(workDir, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("failed to read the module file of %s: %w", b.name, err)
	}
	sum, err := os.ReadFile(filepath.Join(workDir, "go.sum"))
	if err != nil {
		return nil, fmt.Errorf("failed to read the checksums of %s: %w", b.name, err)
	}
	ldflags := "-s -w"
	if b.stamp != nil {
		version, err := requiredVersion(mod, b.module)
		if err != nil {
			return nil, err
		}
		for _, setting := range b.stamp(version) {
			ldflags += " -X " + setting
		}
	}
	args := []string{"build", "-trimpath", "-ldflags", ldflags}
	if b.tags != "" {
		args = append(args, "-tags", b.tags)
	}
	parts := []string{string(mod), string(sum), b.pkg, strings.Join(args, " "), runtime.Version(), runtime.GOOS, runtime.GOARCH}
	if b.local {
		source, err := sources(filepath.Join(workDir, b.pkg))
		if err != nil {
			return nil, fmt.Errorf("failed to read the source of %s: %w", b.name, err)
		}
		parts = append(parts, source...)
	}

	hash := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(hash, "%d %s\n", len(part), part)
	}
	return &job{binary: b, workDir: workDir, dir: dir, args: args, hash: hex.EncodeToString(hash.Sum(nil))}, nil
}

// sources returns the contents of all files of a folder.
func sources(dir string) ([]string, error) {
	var contents []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		contents = append(contents, string(content))
		return err
	})
	return contents, err
}

// requiredVersion returns the version at which a go.mod requires a module, so that versions are written down once.
func requiredVersion(mod []byte, module string) (string, error) {
	pattern := regexp.MustCompile(`(?m)^(?:require\s+|\t)` + regexp.QuoteMeta(module) + `\s+(v\S+)`)
	match := pattern.FindSubmatch(mod)
	if match == nil {
		return "", fmt.Errorf("go.mod requires no %s", module)
	}
	return string(match[1]), nil
}

func stampFile(dir string, b binary) string { return filepath.Join(dir, b.name+".stamp") }

func (j *job) output() string { return filepath.Join(j.dir, j.name) }

// upToDate reports whether the binary is there and was built from these module files with these flags.
func (j *job) upToDate() bool {
	stamp, err := os.ReadFile(stampFile(j.dir, j.binary))
	return err == nil && strings.TrimSpace(string(stamp)) == j.hash && executable(j.output())
}

// build runs the Go command and puts its result in place in one step, so that an interrupted build leaves the former
// binary or none, never half of one.
func (j *job) build(ctx context.Context) error {
	logPath := filepath.Join(j.dir, j.name+".log")
	log, err := os.Create(logPath)
	if err != nil {
		return fmt.Errorf("failed to create the build log: %w", err)
	}
	defer log.Close()

	unfinished := filepath.Join(j.dir, "."+j.name+".unfinished")
	defer os.Remove(unfinished)

	began := time.Now()
	cmd := exec.CommandContext(ctx, "go", append(j.args, "-o", unfinished, j.pkg)...)
	cmd.Dir = j.workDir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if j.cgo {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	cmd.Stdout, cmd.Stderr = log, log
	// The go command stops its compilers when it is interrupted; killed, it would leave them running.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second

	if err := j.await(cmd, began); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("building %s was interrupted; run it again to go on from what Go has cached", j.name)
		}
		return fmt.Errorf("failed to build %s: %w\n%s\nthe whole log is %s", j.name, err, tail(logPath, 30), logPath)
	}
	if err := os.Rename(unfinished, j.output()); err != nil {
		return fmt.Errorf("failed to put %s in place: %w", j.name, err)
	}
	// Not through a hard link: another folder may share the former one, whose binary stays as it was.
	if err := os.Remove(stampFile(j.dir, j.binary)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("failed to stamp %s: %w", j.name, err)
	}
	if err := os.WriteFile(stampFile(j.dir, j.binary), []byte(j.hash+"\n"), 0o644); err != nil {
		return fmt.Errorf("failed to stamp %s: %w", j.name, err)
	}
	_ = os.Remove(logPath)
	say("built %s in %s", j.name, time.Since(began).Round(time.Second))
	return nil
}

// await runs the command and says now and then that it is still running.
func (j *job) await(cmd *exec.Cmd, began time.Time) error {
	done := make(chan error, 1)
	go func() { done <- cmd.Run() }()
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			say("  still building %s, %s so far (about %s the first time)", j.name, time.Since(began).Round(time.Second), j.firstTime)
		}
	}
}

// tail returns the last lines of a file, for an error message.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return string(bytes.Join(all, []byte("\n")))
}

// lock keeps two builds from working in the same folder; the second waits, and then finds the work done.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("failed to open the lock file: %w", err)
	}
	for waiting := false; ; {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			// The lock goes with the process, however it ends; the file itself stays.
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = file.Close()
			return nil, fmt.Errorf("failed to lock %s: %w", path, err)
		}
		if !waiting {
			waiting = true
			say("another build is running in this folder; waiting for it")
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}
