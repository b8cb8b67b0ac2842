package cluster

import (
	"context"
	"time"
)

// Program is a program that runs beside the cluster and works against it, such as Penstock's manager.
type Program struct {
	// Name names the log.
	Name string
	// Path is the executable.
	Path string
	// Args are its arguments.
	Args []string
	// Ready is asked until it returns nil; nil for not waiting.
	Ready func(context.Context) error
	// Grace is how long the program may take to end by itself before it is killed; two seconds when 0.
	Grace time.Duration
}

// Running is a program that was started.
type Running struct {
	process *process
}

// Run starts a program and returns once it is ready. Stop of the cluster ends it, before the API server; it may also be
// stopped alone. When it fails to become ready, the error holds the end of its log.
func (c *Cluster) Run(ctx context.Context, program Program) (*Running, error) {
	p, err := startProcess(program.Name, program.Path, c.logDir(), program.Args...)
	if err != nil {
		return nil, err
	}
	if program.Grace > 0 {
		p.grace = program.Grace
	}
	c.mu.Lock()
	c.others = append(c.others, p)
	c.mu.Unlock()
	if program.Ready != nil {
		if err := p.await(ctx, program.Ready); err != nil {
			p.stop()
			return nil, err
		}
	}
	return &Running{process: p}, nil
}

// Stop asks the program to end, kills it when it does not, and waits until it is gone.
func (r *Running) Stop() { r.process.stop() }

// Ended is closed once the program is gone.
func (r *Running) Ended() <-chan struct{} { return r.process.ended }

// Failure says how the program ended, with the end of its log; call it once Ended is closed.
func (r *Running) Failure() error { return r.process.failure(orExited(r.process.err)) }

// PID is the number of the program's process.
func (r *Running) PID() int { return r.process.pid }

// LogPath is the path of the program's log.
func (r *Running) LogPath() string { return r.process.logPath }
