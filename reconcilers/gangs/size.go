package gangs

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// needed is AtOnce as the scheduler has to count it, while it has any pod to
// place. One that takes the place of a lost pod must not wait for peers that are
// done, or are of no group: so it is never more than can be counted. Those of
// them that are placed already, or are done, are so many less to come; one of no
// group that is still to be placed is none, as it may never be.
func (g *Gang) needed() int32 {
	least, countable := g.AtOnce(), int32(0)
	for _, crew := range g.Crews {
		if crew.Follows {
			continue
		}
		for _, m := range crew.Members {
			switch {
			case !g.misses(m):
				countable++
			case m.Done || m.placed():
				least--
			}
		}
	}
	return max(min(least, countable), 1)
}

// misses says whether there are pods to place, and the scheduler does not count
// this one: it is done, and the scheduler sees none that are, or not this one; or
// it was made without the group.
func (g *Gang) misses(m Member) bool {
	switch {
	case !g.placing:
		return false
	case m.Done:
		return !g.Scheduler.Counts() || m.Pod == nil || !g.Scheduler.Joined(g.Name, m.Pod)
	case m.There:
		return !g.Scheduler.Joined(g.Name, m.Pod)
	default:
		return false
	}
}

// placed is the number of pods that are placed, or have been and are done.
func (g *Gang) placed() int32 {
	var n int32
	for _, crew := range g.Crews {
		for _, m := range crew.Members {
			if m.Done || m.placed() {
				n++
			}
		}
	}
	return n
}

func (g *Gang) total() int32 {
	var n int32
	for _, crew := range g.Crews {
		n += int32(len(crew.Members))
	}
	return n
}

// minResources is what must be free before any pod of the gang is placed: what
// spec.gang says, or the requests of as many pods as are needed, in the order of
// roles.
func (g *Gang) minResources() corev1.ResourceList {
	if given := g.Gang.MinResources; len(given) > 0 {
		return given
	}
	total := corev1.ResourceList{}
	left := g.needed()
	for _, crew := range g.Crews {
		if crew.Follows {
			continue
		}
		n := int32(0)
		for _, m := range crew.Members {
			if n < left && !g.misses(m) {
				n++
			}
		}
		left -= n
		for name, quantity := range pods.Requests(crew.Spec) {
			quantity.Mul(int64(n))
			pods.Add(total, name, quantity)
		}
	}
	return total
}
