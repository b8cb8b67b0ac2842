package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// The load under which a policy is edited, and how often: a hundred times a
// minute and more.
const (
	swapRate   = 200
	swapTurn   = 10 * time.Second
	swapTurns  = 3
	swapEvery  = 500 * time.Millisecond
	swapLimit  = 2.0
	swapPolicy = "swapped"
)

// swapRego says its number twice, by its text and by its parameters, which are
// edited together.
const swapRego = `package swapped
violation contains sprintf("generation %%d, %%d", [%d, input.parameters.generation]) if true
violation contains sprintf("again %%d", [%d]) if true
`

func swapped(generation int) *v1.WorkloadPolicy {
	policy := &v1.WorkloadPolicy{}
	policy.Name = swapPolicy
	policy.Spec.Action = v1.ActionWarn
	policy.Spec.Match.Resources = []v1.PolicyResources{{Group: v1.GroupName, Kinds: []string{v1.TrainingJobKind}}}
	policy.Spec.Parameters = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"generation":%d}`, generation)}
	policy.Spec.Rego = fmt.Sprintf(swapRego, generation, generation)
	return policy
}

// loadResult is what came of some requests.
type loadResult struct {
	mu        sync.Mutex
	took      []time.Duration
	fault     error
	failed    int
	mixed     int
	different map[string]bool
}

// swapBars sends requests at a constant rate, in turns with and without edits of a
// policy among the whole library.
func swapBars(ctx context.Context, l *liveServers) ([]bar, error) {
	if err := l.create(ctx, []*v1.WorkloadPolicy{swapped(0)}); err != nil {
		return nil, err
	}
	quiet, busy := &loadResult{different: map[string]bool{}}, &loadResult{different: map[string]bool{}}
	generation := 0
	for range swapTurns {
		l.ours.atRate(ctx, l.review, quiet)
		editing, stop := context.WithCancel(ctx)
		var editor sync.WaitGroup
		var err error
		editor.Go(func() { generation, err = l.editUntil(editing, generation) })
		l.ours.atRate(ctx, l.review, busy)
		stop()
		editor.Wait()
		if err != nil {
			return nil, err
		}
	}
	if fault := quiet.fault; fault != nil || busy.fault != nil {
		fmt.Printf("%-28s first fault: %v, %v\n", "policy-swap", fault, busy.fault)
	}
	before, during := percentile99(quiet.took), percentile99(busy.took)
	fmt.Printf("%-28s %d edits, %d of them seen, in %d requests at %d/s: p99 %.1f ms, without edits %.1f ms\n",
		"policy-swap", generation, len(busy.different), len(busy.took), swapRate, during.Seconds()*1e3, before.Seconds()*1e3)
	if len(busy.different) < generation/2 {
		return nil, fmt.Errorf("of %d edits only %d came into force", generation, len(busy.different))
	}
	return []bar{
		{"policy-swap-p99", during.Seconds() / before.Seconds(), swapLimit},
		{"policy-swap-failed", float64(quiet.failed + busy.failed), 0},
		{"policy-swap-mixed", float64(quiet.mixed + busy.mixed), 0},
	}, nil
}

// editUntil edits the policy until ctx ends, and gives the number it came to.
func (l *liveServers) editUntil(ctx context.Context, generation int) (int, error) {
	ticker := time.NewTicker(swapEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return generation, nil
		case <-ticker.C:
		}
		var stored v1.WorkloadPolicy
		err := l.client.Get(ctx, client.ObjectKey{Name: swapPolicy}, &stored)
		if err == nil {
			before := stored.DeepCopy()
			stored.Spec = swapped(generation + 1).Spec
			err = l.client.Patch(ctx, &stored, client.MergeFrom(before))
		}
		switch {
		case ctx.Err() != nil:
			return generation, nil
		case err != nil:
			return generation, fmt.Errorf("failed to edit a policy: %w", err)
		}
		generation++
	}
}

// atRate sends requests for one turn, each at its time whatever became of those
// before it.
func (s *server) atRate(ctx context.Context, review []byte, result *loadResult) {
	var under sync.WaitGroup
	defer under.Wait()
	ticker := time.NewTicker(time.Second / swapRate)
	defer ticker.Stop()
	for end := time.Now().Add(swapTurn); time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		under.Go(func() {
			start := time.Now()
			answer, err := s.answer(ctx, review)
			result.note(time.Since(start), answer, err)
		})
	}
}

// note counts one answer.
func (r *loadResult) note(took time.Duration, answer []byte, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took = append(r.took, took)
	var review admissionv1.AdmissionReview
	if err == nil {
		err = json.Unmarshal(answer, &review)
	}
	if err == nil && (review.Response == nil || !review.Response.Allowed) {
		err = fmt.Errorf("refused: %s", answer)
	}
	if err != nil {
		r.failed++
		r.fault = err
		return
	}
	numbers := map[string]bool{}
	for _, warning := range review.Response.Warnings {
		if !strings.Contains(warning, "(policy "+swapPolicy+")") {
			continue
		}
		for word := range strings.FieldsSeq(warning) {
			if number := strings.Trim(word, ","); strings.Trim(number, "0123456789") == "" {
				numbers[number] = true
			}
		}
	}
	if len(numbers) != 1 {
		r.mixed++
		r.fault = fmt.Errorf("a mixed verdict: %q", review.Response.Warnings)
	}
	for number := range numbers {
		r.different[number] = true
	}
}

func percentile99(taken []time.Duration) time.Duration {
	slices.Sort(taken)
	return taken[len(taken)*99/100]
}

// create creates policies and waits until all judge.
func (l *liveServers) create(ctx context.Context, all []*v1.WorkloadPolicy) error {
	wanted := map[string]bool{}
	for _, policy := range all {
		created := policy.DeepCopy()
		created.ResourceVersion = ""
		if err := l.client.Create(ctx, created); err != nil {
			return fmt.Errorf("failed to create a policy: %w", err)
		}
		wanted[policy.Name] = true
	}
	return l.await(ctx, func(list *v1.WorkloadPolicyList) bool {
		enforced := 0
		for i := range list.Items {
			if policy := &list.Items[i]; wanted[policy.Name] && policy.Status.EnforcedGeneration == policy.Generation {
				enforced++
			}
		}
		return enforced == len(wanted)
	})
}

// deleteAll deletes all policies and waits until none judges.
func (l *liveServers) deleteAll(ctx context.Context) error {
	if err := l.client.DeleteAllOf(ctx, &v1.WorkloadPolicy{}); err != nil {
		return fmt.Errorf("failed to delete the policies: %w", err)
	}
	return l.await(ctx, func(list *v1.WorkloadPolicyList) bool { return len(list.Items) == 0 })
}

// await waits until the policies are as they should be, and the manager has had a
// moment to come to rest.
func (l *liveServers) await(ctx context.Context, done func(*v1.WorkloadPolicyList) bool) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		var list v1.WorkloadPolicyList
		if err := l.client.List(ctx, &list); err != nil {
			return fmt.Errorf("failed to list the policies: %w", err)
		}
		settled := done(&list)
		select {
		case <-ctx.Done():
			return fmt.Errorf("the policies did not come into force: %w", ctx.Err())
		case <-ticker.C:
		}
		if settled {
			return nil
		}
	}
}
