package ray

import (
	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/gangs"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// planGang decides how the pods of the cluster are placed, and asks for the pod
// group that it needs and no other.
func (p *planner) planGang() {
	p.gang, p.ungrouped = gangs.Choose(p.workload(), p.observed)
	if p.gang != nil {
		p.result.Apply = append(p.result.Apply, p.gang.Group())
	}
	for _, group := range p.gang.Stale(p.observed) {
		p.remove(group, "the cluster has no such pod group")
	}
}

// workload is the cluster as a gang is made of it. Its group has a name that no
// training job's has.
func (p *planner) workload() gangs.Workload {
	w := gangs.Workload{
		Name: fitted(p.cluster, "-ray"), Namespace: p.cluster.Namespace, Labels: clusterLabels(p.cluster), Gang: p.cluster.Spec.Gang,
	}
	if w.Gang == nil {
		return w
	}
	w.Crews = append(w.Crews, crewOf(headOf(p.cluster), []*unit{p.census.head}, 1, 1))
	for _, g := range p.census.groups {
		least := g.wanted
		if p.keepsSurplus(g) {
			// Ray adds the others when there is work for them.
			smallest, _ := bounds(g.role)
			least = min(smallest, least)
		}
		w.Crews = append(w.Crews, crewOf(g.role, g.staying(), p.target(g)*g.hosts, least*g.hosts))
	}
	return w
}

func crewOf(role *v1.RayRole, units []*unit, wanted, least int32) gangs.Crew {
	crew := gangs.Crew{Name: role.Name, Topology: role.Topology, Spec: &role.Template.Spec, Least: least}
	for _, u := range units {
		for i, pod := range u.members {
			state := u.conditions[i].State
			crew.Members = append(crew.Members, gangs.Member{
				Pod: pod, There: !u.leaving && (state == pods.Pending || state == pods.Active),
			})
		}
	}
	for int32(len(crew.Members)) < wanted {
		crew.Members = append(crew.Members, gangs.Member{})
	}
	crew.Members = crew.Members[:wanted]
	return crew
}

// reportGang says how far the gang is placed.
func (p *planner) reportGang() {
	if p.cluster.Spec.Gang == nil {
		meta.RemoveStatusCondition(&p.status.Conditions, v1.GangScheduledCondition)
		return
	}
	status, reason, message := gangs.Report(p.workload(), p.gang, p.ungrouped)
	p.setCondition(v1.GangScheduledCondition, status, reason, message)
}
