package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-dev/penstock/test/cluster"
)

// A turn of a running server is requestsPerTurn reviews, concurrency at a
// time: together about a second of a processor, whose time Linux tells in
// hundredths of a second.
const (
	requestsPerTurn = 3000
	concurrency     = 8
	requestTimeout  = 30 * time.Second
)

// server is a running process that answers reviews.
type server struct {
	pid    int
	url    string
	client *http.Client
	// good is in every answer that is no failure.
	good []byte
}

func newServer(pid, port int) *server {
	return &server{
		pid:  pid,
		url:  urlOf(port, validatePath),
		good: []byte(`"allowed":true`),
		client: &http.Client{Timeout: requestTimeout, Transport: &http.Transport{
			// The servers are this process' own children, on this machine.
			TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // There is nobody else to be.
			MaxIdleConnsPerHost: concurrency,
			MaxConnsPerHost:     concurrency,
		}},
	}
}

func urlOf(port int, path string) string {
	return "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) + path + "?timeout=10s"
}

// converting is the same server where it converts.
func (s *server) converting() *server {
	converting := *s
	converting.url = strings.Replace(s.url, validatePath, convertPath, 1)
	converting.good = []byte(`"Success"`)
	return &converting
}

// posted measures one turn of reviews.
func (s *server) posted(ctx context.Context, name string, review []byte) measured {
	return measured{name, func() (float64, error) {
		before, err := cluster.CPUTime(s.pid)
		if err != nil {
			return 0, err
		}
		if err := s.postAll(ctx, review); err != nil {
			return 0, err
		}
		after, err := cluster.CPUTime(s.pid)
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
	answer, err := s.answer(ctx, review)
	if err == nil && !bytes.Contains(answer, s.good) {
		err = fmt.Errorf("got %s", answer)
	}
	return err
}

// answer sends one review.
func (s *server) answer(ctx context.Context, review []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(review))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("got %s: %s", response.Status, answer)
	}
	return answer, err
}
