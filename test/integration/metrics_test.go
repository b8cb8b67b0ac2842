package integration

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// metricsAddress is where the suite's manager serves its metrics.
var metricsAddress string

// managerMetrics reads what the manager counts.
func managerMetrics(ctx context.Context) string {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+metricsAddress+"/metrics", nil)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return string(body)
}

// apiServerMetrics reads what the API server counts.
func apiServerMetrics(ctx context.Context) string {
	GinkgoHelper()
	body, err := clientset.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	return string(body)
}

// samples gives the values of a metric by its labels, as they are written, of
// those series whose labels hold all that is asked for.
func samples(metrics, name string, labels ...string) map[string]float64 {
	GinkgoHelper()
	found := map[string]float64{}
	for _, line := range regexp.MustCompile(`(?m)^`+name+`(\{.*\})? (\S+)$`).FindAllStringSubmatch(metrics, -1) {
		holds := true
		for _, label := range labels {
			holds = holds && strings.Contains(line[1], label)
		}
		if !holds {
			continue
		}
		value, err := strconv.ParseFloat(line[2], 64)
		Expect(err).NotTo(HaveOccurred(), line[0])
		found[line[1]] = value
	}
	return found
}

func sum(values map[string]float64) float64 {
	total := 0.0
	for _, value := range values {
		total += value
	}
	return total
}

// webhookCalls is how many calls the manager has answered.
func webhookCalls(ctx context.Context) float64 {
	GinkgoHelper()
	metrics := managerMetrics(ctx)
	return sum(samples(metrics, "penstock_admission_duration_seconds_count")) + sum(samples(metrics, "penstock_conversion_duration_seconds_count"))
}

// writesByResource counts the API server's write requests that are of interest to
// whoever asks whether something is at rest: of all but leases and of reviews,
// which store nothing.
func writesByResource(ctx context.Context) map[string]float64 {
	GinkgoHelper()
	counted := map[string]float64{}
	metrics := apiServerMetrics(ctx)
	for _, verb := range []string{"POST", "PUT", "PATCH", "DELETE", "APPLY"} {
		for labels, value := range samples(metrics, "apiserver_request_total", fmt.Sprintf("verb=%q", verb)) {
			resource := regexp.MustCompile(`[{,]resource="([^"]*)"`).FindStringSubmatch(labels)
			if resource == nil || resource[1] == "leases" || strings.HasSuffix(resource[1], "reviews") {
				continue
			}
			counted[verb+" "+resource[1]] += value
		}
	}
	return counted
}
