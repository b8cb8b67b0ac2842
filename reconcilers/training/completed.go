package training

import (
	"strconv"
	"strings"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/reconcilers/pods"
)

// Which pods are done.
//
// A pod that has succeeded may be deleted before the job ends: by the scale-down
// of its node, by the pod garbage collector, by hand. It must not run again: its
// peers of a collective have finished too and would never answer. So the indices
// are kept in status.roles[].completedIndexes. They are forgotten when the job
// is suspended, when the gang is restarted, since all run again then, and above
// the wanted number of pods, since a worker that is scaled in again is a new one.
//
// Roles that serve the others, such as parameter servers and MPI workers, have
// no work of their own that could be done: they are run again.

// serves says whether pods of a role work for the others until the job ends.
func (c *census) serves(role v1.RoleName) bool {
	f, ok := c.framework.(serving)
	return ok && f.serves(role)
}

// recall makes the members of a crew done whose indices are stored as done and
// whose pods are gone or going.
func (c *census) recall(crew *crew) {
	if c.serves(crew.role.Name) {
		return
	}
	for i := range c.job.Status.Roles {
		stored := &c.job.Status.Roles[i]
		if stored.Name != crew.role.Name {
			continue
		}
		for _, span := range parseIndexes(stored.CompletedIndexes) {
			for index := span[0]; index <= min(span[1], crew.wanted()-1); index++ {
				if m := crew.members[index]; m.State == pods.Missing || m.State == pods.Terminating {
					m.State = pods.Succeeded
				}
			}
		}
	}
}

// completed returns the indices of a crew that are done.
func (p *planner) completed(crew *crew) string {
	if p.census.serves(crew.role.Name) {
		return ""
	}
	var text strings.Builder
	for first := 0; first < len(crew.members); first++ {
		if crew.members[first].State != pods.Succeeded {
			continue
		}
		last := first
		for last+1 < len(crew.members) && crew.members[last+1].State == pods.Succeeded {
			last++
		}
		if text.Len() > 0 {
			text.WriteByte(',')
		}
		text.WriteString(strconv.Itoa(first))
		if last > first {
			text.WriteString("-" + strconv.Itoa(last))
		}
		first = last
	}
	return text.String()
}

// parseIndexes reads what completed wrote, as spans from the first index to the
// last. What is not in that form counts for nothing: somebody may have written
// the status by hand.
func parseIndexes(text string) [][2]int32 {
	var spans [][2]int32
	for part := range strings.SplitSeq(text, ",") {
		from, to, isSpan := strings.Cut(part, "-")
		if !isSpan {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 31)
		last, err2 := strconv.ParseUint(to, 10, 31)
		if err == nil && err2 == nil {
			spans = append(spans, [2]int32{int32(first), int32(last)})
		}
	}
	return spans
}
