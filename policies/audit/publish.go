package audit

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/policies/stored"
)

// publish hands results that changed to the status of their policies, of those
// whose objects have all been judged.
func (a *Auditor) publish() {
	a.mu.Lock()
	var changed []string
	for name, policy := range a.policies {
		if !policy.dirty || !a.settled(name, policy) {
			continue
		}
		policy.dirty = false
		var next v1.PolicyAudit
		if policy.spec != nil && stored.JudgedBy(policy.spec) {
			next = a.results.status(name, policy.generation, append(a.unread(policy), policy.unseen...))
		}
		if policy.published == nil || !equality.Semantic.DeepEqual(*policy.published, next) {
			policy.published = &next
			changed = append(changed, name)
		}
	}
	a.mu.Unlock()
	for _, name := range changed {
		select {
		case a.changed <- event.GenericEvent{Object: &v1.WorkloadPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}}:
		default:
			// The status looks again by itself, as it does for every policy
			// when it starts.
			a.mu.Lock()
			if policy := a.policies[name]; policy != nil {
				policy.dirty, policy.published = true, nil
			}
			a.mu.Unlock()
		}
	}
}

// settled reports whether a policy has judged all that there is. Its caller holds
// mu.
func (a *Auditor) settled(name string, policy *auditedPolicy) bool {
	if policy.pending {
		return false
	}
	for _, kind := range policy.kinds {
		w := a.watches[kind.GroupVersionKind]
		if w == nil || !w.settled() {
			return false
		}
		if scan := a.scans[kind.GroupVersionKind]; scan != nil && scan.has(name) {
			return false
		}
		if a.scanning != nil && a.scanning.kind == kind && a.scanning.has(name) {
			return false
		}
	}
	return true
}

// allSettled reports whether all policies have judged all that there is.
func (a *Auditor) allSettled() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, policy := range a.policies {
		if !a.settled(name, policy) {
			return false
		}
	}
	for _, w := range a.watches {
		if !w.synced && !w.closed {
			return false
		}
	}
	return a.followed
}

// unread are the kinds of a policy that cannot be read. Its caller holds mu.
func (a *Auditor) unread(policy *auditedPolicy) []stored.UnseenKind {
	var found []stored.UnseenKind
	for _, kind := range policy.kinds {
		if w := a.watches[kind.GroupVersionKind]; w != nil && w.fault != "" {
			found = append(found, stored.UnseenKind{Kind: kind.GroupVersionKind.GroupKind().String(), Reason: w.fault})
		}
	}
	return found
}

// Result gives what to write into the status of a policy, and whether anything
// is known of it yet.
func (a *Auditor) Result(policy *v1.WorkloadPolicy) (v1.PolicyAudit, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.policies[policy.Name]
	if known == nil || known.uid != policy.UID || known.published == nil {
		return v1.PolicyAudit{}, false
	}
	return *known.published.DeepCopy(), true
}
