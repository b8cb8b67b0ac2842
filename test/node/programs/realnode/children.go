package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// children are the node's programs. As the first process of its namespace, this
// one also inherits the processes that others leave behind, such as containerd's
// shims, and must wait for them like for its own.
type children struct {
	logs string

	mu     sync.Mutex
	byPID  map[int]*child
	byName map[string]*child
	ends   chan *child
}

// child is a program that was started.
type child struct {
	name, log string
	ended     chan struct{}
	status    syscall.WaitStatus // once ended is closed
}

func newChildren(logs string) *children {
	c := &children{logs: logs, byPID: map[int]*child{}, byName: map[string]*child{}, ends: make(chan *child, 16)}
	go c.reap()
	return c
}

// start starts a program, whose output is appended to its log.
func (c *children) start(name, path string, args ...string) error {
	one := &child{name: name, log: filepath.Join(c.logs, name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(one.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	// No child is waited for before it is known.
	c.mu.Lock()
	defer c.mu.Unlock()
	process, err := os.StartProcess(path, append([]string{path}, args...), &os.ProcAttr{
		Dir: stateDir, Env: c.environment(filepath.Dir(path)), Files: []*os.File{nil, log, log},
	})
	if err != nil {
		return fmt.Errorf("failed to start %s: %w", name, err)
	}
	c.byPID[process.Pid], c.byName[name] = one, one
	return process.Release()
}

// environment lets programs find what they call, such as mount.
func (*children) environment(dir string) []string {
	return []string{"PATH=" + dir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "LANG=C"}
}

// reap waits for all that end, for ever.
func (c *children) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err != nil {
			time.Sleep(10 * time.Millisecond) // There is none to wait for.
			continue
		}
		c.mu.Lock()
		one := c.byPID[pid]
		delete(c.byPID, pid)
		c.mu.Unlock()
		if one != nil {
			one.status = status
			close(one.ended)
			c.ends <- one
		}
	}
}

// await waits until ready returns nil.
func (c *children) await(name string, ready func() error) error {
	one := c.named(name)
	deadline := time.After(startTimeout)
	for {
		last := ready()
		if last == nil {
			return nil
		}
		select {
		case <-one.ended:
			return one.failure(fmt.Errorf("%s ended as it started (%s)", name, describe(one.status)))
		case <-deadline:
			return one.failure(fmt.Errorf("%s did not become ready: %w", name, last))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// success waits for a program that does one thing and ends.
func (c *children) success(name string) error {
	one := c.named(name)
	select {
	case <-one.ended:
	case <-time.After(startTimeout):
		return one.failure(fmt.Errorf("%s does not end", name))
	}
	<-c.ends
	if one.status.ExitStatus() != 0 {
		return one.failure(fmt.Errorf("%s failed (%s)", name, describe(one.status)))
	}
	return nil
}

// firstEnd waits until one of the programs ends, which none should.
func (c *children) firstEnd() error {
	one := <-c.ends
	return one.failure(fmt.Errorf("%s has ended (%s)", one.name, describe(one.status)))
}

func (c *children) named(name string) *child {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byName[name]
}

// failure adds the end of the program's log to an error.
func (c *child) failure(err error) error {
	text, unread := os.ReadFile(c.log)
	if unread != nil {
		return errors.Join(err, unread)
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if most := 15; len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return fmt.Errorf("%w\n--- end of %s ---\n%s", err, c.log, bytes.Join(lines, []byte("\n")))
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return status.Signal().String()
	}
	return fmt.Sprintf("exit code %d", status.ExitStatus())
}
