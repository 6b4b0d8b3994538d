package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/musterfleet/muster/fleet"
)

// Limits of unassigned manifests: any node can report any number of them.
const (
	// maxUnassignedOfNode limits the counted manifests of one node, maxUnassigned the counted manifests of all nodes.
	maxUnassignedOfNode = 20
	maxUnassignedTotal  = 10_000
	// maxChecked limits the manifests whose keys are checked.
	maxChecked = 50
)

// Lost is a manifest that reachable nodes run although the bucket lost its key.
type Lost struct {
	Key string `json:"key"`
	// Revision is the newest revision that a node runs.
	Revision uint64 `json:"revision"`
	Members
}

// unassigned counts a manifest that the current node runs without an assignment, unless the node is away.
func (c *counter) unassigned(s *fleet.RolloutStatus) {
	if c.rest < 0 {
		return
	}
	l := c.lost[s.Key]
	if c.rest == 0 || l == nil && len(c.lost) >= maxUnassignedTotal {
		c.unchecked++
		return
	}
	c.rest--
	if l == nil {
		l = &Lost{Key: s.Key}
		c.lost[s.Key] = l
	}
	l.Revision = max(l.Revision, s.Current)
	l.add(s.Node)
}

// sortedUnassigned returns the unassigned manifests to check, the most frequent first, and the number of the others.
func (c *counter) sortedUnassigned() (all []Lost, more int) {
	sorted := slices.SortedFunc(maps.Values(c.lost), func(a, b *Lost) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Key, b.Key))
	})
	more = c.unchecked
	for i, l := range sorted {
		if i < maxChecked {
			all = append(all, *l)
		} else {
			more += l.Nodes
		}
	}

	return all, more
}

// Revisions returns the keys of Unassigned with the revisions that nodes run.
func (s *Summary) Revisions() map[string]uint64 {
	out := make(map[string]uint64, len(s.Unassigned))
	for _, l := range s.Unassigned {
		out[l.Key] = l.Revision
	}

	return out
}

// SetLost moves the manifests of Unassigned whose keys are lost to Lost, and clears Unassigned.
func (s *Summary) SetLost(lost map[string]bool) {
	s.Lost = []Lost{}
	for _, l := range s.Unassigned {
		if lost[l.Key] {
			s.Lost = append(s.Lost, l)
		}
	}
	if s.Unassigned = nil; len(s.Lost) > 0 {
		s.LostUnchecked = s.unchecked
	}
}

// LostTitle returns the number of lost manifests, empty for none.
func (s *Summary) LostTitle() string {
	switch len(s.Lost) {
	case 0:
		return ""
	case 1:
		return "1 manifest has lost its key"
	default:
		return fmt.Sprintf("%d manifests have lost their keys", len(s.Lost))
	}
}

// LostRemedy returns the remedy for the lost manifests, with the command that removes a key.
func (s *Summary) LostRemedy(remove string) string {
	if len(s.Lost) == 1 {
		return "push it again or run " + remove
	}

	return "push them again or run " + remove
}
