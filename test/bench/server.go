package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A turn of a running server is requestsPerTurn reviews, concurrency at a
// time: together about a second of a processor, whose time Linux tells in
// hundredths of a second.
const (
	requestsPerTurn = 3000
	concurrency     = 8
	requestTimeout  = 30 * time.Second
)

// clockTick is the unit of times in /proc, the same on all platforms of Linux
// that Go knows.
const clockTick = 10 * time.Millisecond

// server is a running process that answers reviews.
type server struct {
	pid    int
	url    string
	client *http.Client
}

func newServer(pid, port int) *server {
	return &server{
		pid: pid,
		url: "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) + validatePath + "?timeout=10s",
		client: &http.Client{Timeout: requestTimeout, Transport: &http.Transport{
			// The servers are this process' own children, on this machine.
			TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // There is nobody else to be.
			MaxIdleConnsPerHost: concurrency,
			MaxConnsPerHost:     concurrency,
		}},
	}
}

// posted measures one turn of reviews.
func (s *server) posted(ctx context.Context, name string, review []byte) measured {
	return measured{name, func() (float64, error) {
		before, err := cpuOf(s.pid)
		if err != nil {
			return 0, err
		}
		if err := s.postAll(ctx, review); err != nil {
			return 0, err
		}
		after, err := cpuOf(s.pid)
		return float64(after-before) / requestsPerTurn, err
	}}
}

func (s *server) postAll(ctx context.Context, review []byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var posters sync.WaitGroup
	for range concurrency {
		posters.Go(func() {
			for next.Add(1) <= requestsPerTurn {
				if err := s.post(ctx, review); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	posters.Wait()
	return context.Cause(ctx)
}

func (s *server) post(ctx context.Context, review []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(review))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(`"allowed":true`)) {
		return fmt.Errorf("got %s: %s", response.Status, answer)
	}
	return nil
}

// cpuOf is what a process has taken of processors so far.
func cpuOf(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("failed to read the time of a server: %w", err)
	}
	// The name of the program, in parentheses, may hold anything. The fields
	// behind it start with the third; utime and stime are 14 and 15.
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, errors.New("failed to read the time of a server: /proc has too few fields")
	}
	var ticks int64
	for _, field := range fields[11:13] {
		one, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("failed to read the time of a server: %w", err)
		}
		ticks += one
	}
	return time.Duration(ticks) * clockTick, nil
}
