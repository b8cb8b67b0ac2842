package training

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// supplies are children beside pods and their services.
type supplies struct {
	apply    []runtime.ApplyConfiguration
	generate []plan.Generated
}

// supplying is what a framework also implements if its pods need more than
// environment: files, keys, rights.
type supplying interface {
	supply(p *planner) supplies
}

// awaiting is what a framework also implements if some pods come after others.
type awaiting interface {
	// awaits says what the pod of a member waits for, or nothing. It is asked
	// before a pod is made, and never of one that is there.
	awaits(c *census, m *member) string
}

// planSupplies asks for what the pods need, before the pods.
func (p *planner) planSupplies() {
	if f, ok := p.framework.(supplying); ok {
		needs := f.supply(p)
		p.result.Apply = append(p.result.Apply, needs.apply...)
		p.result.Generate = append(p.result.Generate, needs.generate...)
	}
}

// removeSupplies deletes what is neither pod, service nor autoscaler.
func (p *planner) removeSupplies(reason string) {
	for _, child := range p.observed.Children {
		if isSupply(child) {
			p.remove(child, reason)
		}
	}
}

func isSupply(child plan.Object) bool {
	switch child.(type) {
	case *corev1.ConfigMap, *corev1.Secret, *corev1.ServiceAccount, *rbacv1.Role, *rbacv1.RoleBinding:
		return true
	default:
		return false
	}
}
