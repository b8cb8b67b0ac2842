package training

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/gangs"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// following is what a framework also implements if the pods of a role are made
// only when those of others run: they cannot be placed together.
type following interface {
	follows(c *census, role v1.RoleName) bool
}

// chooseGang decides how the pods of the job are placed.
func (p *planner) chooseGang() { p.gang, p.ungrouped = gangs.Choose(p.workload(), p.observed) }

// workload is the job as a gang is made of it. Its pod group is named after it.
func (p *planner) workload() gangs.Workload {
	w := gangs.Workload{
		Name: p.job.Name, Namespace: p.job.Namespace, Labels: jobLabels(p.job), Gang: p.job.Spec.Gang,
		// An elastic job goes on with less workers.
		Whole: gangRestarts(p.job) && p.job.Spec.Elastic == nil,
	}
	if w.Gang == nil {
		return w
	}
	f, follows := p.framework.(following)
	for _, crew := range p.census.crews {
		c := gangs.Crew{
			Name: crew.role.Name, Topology: crew.role.Topology, Spec: &crew.role.Template.Spec,
			Least: crew.least(p.job), Follows: follows && f.follows(p.census, crew.role.Name),
		}
		for _, m := range crew.members {
			c.Members = append(c.Members, gangs.Member{
				Pod: m.pod, Done: m.done(), There: m.State == pods.Pending || m.State == pods.Active,
			})
		}
		w.Crews = append(w.Crews, c)
	}
	return w
}

// least is how many pods of a role must be placeable at once: all, or of elastic
// workers their minimum.
func (c *crew) least(job *v1.TrainingJob) int32 {
	if elastic := job.Spec.Elastic; elastic != nil && c.role.Name == v1.RoleWorker {
		return min(max(ptr.Deref(elastic.MinReplicas, 1), 1), c.wanted())
	}
	return c.wanted()
}

// planGang asks for the job's pod group, and for no other.
func (p *planner) planGang() {
	if p.gang != nil {
		p.result.Apply = append(p.result.Apply, p.gang.Group())
	}
	for _, group := range p.gang.Stale(p.observed) {
		p.remove(group, "the job has no such pod group")
	}
}

// reportGang says how far the gang is placed.
func (p *planner) reportGang() {
	if p.job.Spec.Gang == nil {
		meta.RemoveStatusCondition(&p.status.Conditions, v1.TrainingJobGangScheduledCondition)
		return
	}
	status, reason, message := gangs.Report(p.workload(), p.gang, p.ungrouped)
	p.setCondition(v1.TrainingJobGangScheduledCondition, status, reason, message)
}

// removePodGroups removes the groups of a job that has no use for them.
func (p *planner) removePodGroups(reason string) {
	for _, child := range p.observed.Children {
		if gangs.IsPodGroup(child) {
			p.remove(child, reason)
		}
	}
}

func (m *member) done() bool { return m.State == pods.Succeeded || m.failedForGood() }
