package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/test/cluster"
)

// usage is what was used so far.
type usage struct {
	writes float64
	cpu    time.Duration
	memory float64
}

// counted are the writes that only the reconciler makes in this cluster: those
// of children, and of the status.
var counted = []struct{ verb, resource, subresource string }{
	{"POST", "pods", ""}, {"APPLY", "services", ""}, {"PATCH", "services", ""}, {"POST", "services", ""},
	{"PATCH", "trainingjobs", "status"}, {"PUT", "trainingjobs", "status"},
	{"PATCH", "rayclusters", "status"}, {"PUT", "rayclusters", "status"}, {"PATCH", "rayclusters", ""},
}

func (b *bench) usage(ctx context.Context) (u usage, err error) {
	text, err := b.clientset.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return u, fmt.Errorf("failed to read the API server's metrics: %w", err)
	}
	for _, c := range counted {
		u.writes += sum(string(text), "apiserver_request_total", `verb="`+c.verb+`"`, `resource="`+c.resource+`"`, `subresource="`+c.subresource+`"`)
	}
	if u.cpu, err = cluster.CPUTime(b.pid); err != nil {
		return u, err
	}
	own, err := b.managerMetrics(ctx)
	if err != nil {
		return u, err
	}
	u.memory = sum(own, "process_resident_memory_bytes")
	return u, nil
}

// settle waits until nothing was written for two seconds.
func (b *bench) settle(ctx context.Context) (usage, error) {
	last, err := b.usage(ctx)
	if err != nil {
		return last, err
	}
	for quiet := 0; quiet < 2; quiet++ {
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-time.After(time.Second):
		}
		now, err := b.usage(ctx)
		if err != nil {
			return now, err
		}
		if now.writes != last.writes {
			quiet = -1
		}
		last = now
	}
	return last, nil
}

func (b *bench) managerMetrics(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.metrics+"/metrics", nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("failed to read the manager's metrics: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// sum adds the samples of a metric whose labels hold all that is asked for.
func sum(metrics, name string, labels ...string) float64 {
	var total float64
	for _, line := range regexp.MustCompile(`(?m)^`+name+`(\{.*\})? (\S+)$`).FindAllStringSubmatch(metrics, -1) {
		holds := true
		for _, label := range labels {
			holds = holds && strings.Contains(line[1], label)
		}
		if value, err := strconv.ParseFloat(line[2], 64); err == nil && holds {
			total += value
		}
	}
	return total
}
