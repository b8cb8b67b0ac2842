package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopTimeout is how long a component may take to end by itself before it is killed. An API server that has watchers
// would take ten seconds and more; what it has acknowledged is in etcd by then.
const stopTimeout = 2 * time.Second

// process is one running component, in a process group of its own.
type process struct {
	name    string
	logPath string
	pid     int
	grace   time.Duration // how long it may take to end by itself
	ended   chan struct{} // closed once the process has been reaped
	err     error         // how it ended; read after ended is closed
	once    sync.Once
}

// startProcess starts a component whose output is appended to its log.
func startProcess(name, path, logDir string, args ...string) (*process, error) {
	p := &process{name: name, logPath: filepath.Join(logDir, name+".log"), grace: stopTimeout, ended: make(chan struct{})}
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("failed to open the log of %s: %w", name, err)
	}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = logDir
	cmd.SysProcAttr = processAttributes()

	started := make(chan error, 1)
	go func() {
		defer log.Close()
		// Linux kills the child when the thread that started it ends, so that thread is held until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("failed to start %s: %w", name, err)
	}
	return p, nil
}

// stop asks the process to end, kills its group when it does not, and waits until it is gone.
func (p *process) stop() {
	p.once.Do(func() {
		_ = syscall.Kill(p.pid, syscall.SIGTERM)
		select {
		case <-p.ended:
		case <-time.After(p.grace):
		}
		// The group may hold children of a process that has already ended.
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	})
	<-p.ended
}

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// await polls ready until it returns nil. It fails early when the process ends, and names the log when it fails.
func (p *process) await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	last := errors.New("not asked yet")
	ticker := time.NewTicker(25 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-p.ended:
			return p.failure(fmt.Errorf("%s ended while starting: %w", p.name, orExited(p.err)))
		case <-ctx.Done():
			return p.failure(fmt.Errorf("%s did not become ready: %w (last answer: %w)", p.name, ctx.Err(), last))
		case <-ticker.C:
		}
		// One answer may hang for as long as the server is coming up, so each question has a deadline of its own.
		asking, done := context.WithTimeout(ctx, 2*time.Second)
		err := ready(asking)
		done()
		if err == nil {
			return nil
		}
		last = err
	}
}

func orExited(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// failure adds the end of the component's log to an error.
func (p *process) failure(err error) error {
	return &startError{cause: err, logPath: p.logPath, tail: tailOf(p.logPath, 20)}
}

// startError is a component that did not start, with the end of its log.
type startError struct {
	cause   error
	logPath string
	tail    string
}

func (e *startError) Error() string {
	return fmt.Sprintf("%v\n--- end of %s ---\n%s", e.cause, e.logPath, e.tail)
}

func (e *startError) Unwrap() error { return e.cause }

// portTaken reports whether a component failed because another process got its port first.
func portTaken(err error) bool {
	var failed *startError
	return errors.As(err, &failed) && strings.Contains(failed.tail, "address already in use")
}

// tailOf returns the last lines of a log, each cut to a readable length.
func tailOf(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	for i, line := range all {
		if len(line) > 500 {
			all[i] = append(line[:500:500], "..."...)
		}
	}
	return string(bytes.Join(all, []byte("\n")))
}
