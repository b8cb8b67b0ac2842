package controller

import (
	"reflect"
	"sync"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// Coverage says which requests the API server asks a policy about.
type Coverage struct {
	// Generation is that of the policy that this was worked out from.
	Generation int64
	// Static tells that the webhooks of Penstock's own kinds ask the policy.
	Static bool
	// Dynamic tells that entries of the webhook configuration ask it.
	Dynamic bool
	// Absent are kinds, as Kind.group, that the cluster does not serve.
	Absent []string
	// Awaited tells that upstream kinds which the policy judges as well are not
	// served. They are no lack, and may come.
	Awaited bool
	// Installed tells that kinds which the policy judges were installed. They may be
	// removed.
	Installed bool
	// Unasked tells that the policy names subresources which come with none of the
	// operations that it judges. They are among the exclusions.
	Unasked bool
	// Exclusions are what is never asked about, although the policy matches it.
	Exclusions []v1.PolicyExclusion
}

// coverages is what the leader knows of the coverage of all policies, for their
// status.
type coverages struct {
	mu       sync.Mutex
	byPolicy map[string]Coverage
	// fault keeps the configurations from being written, or the probe from
	// coming through.
	fault error
	// confirmed tells that a probe came through the configuration written last.
	confirmed bool
}

// set reports whether it is news. A fault leaves what is known of the policies.
func (c *coverages) set(byPolicy map[string]Coverage, confirmed bool, fault error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if fault != nil && byPolicy == nil {
		byPolicy = c.byPolicy
	}
	news := c.confirmed != confirmed || textOf(c.fault) != textOf(fault) || !reflect.DeepEqual(c.byPolicy, byPolicy)
	c.byPolicy, c.confirmed, c.fault = byPolicy, confirmed, fault
	return news
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (c *coverages) of(policy string) (coverage Coverage, known, confirmed bool, fault error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	coverage, known = c.byPolicy[policy]
	return coverage, known, c.confirmed, c.fault
}
