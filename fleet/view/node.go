package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// Node is the data of one node.
type Node struct {
	model.Node
	// State is its fleet.NodeStatus.
	State fleet.Status `json:"state"`
	// Since is the last update of an unreachable or stopped node, the time of the oldest pending or rejected
	// revision, or the first of the consecutive failed runs. For older agents it is the end of the last
	// failed run. Otherwise it is zero.
	Since    time.Time    `json:"since,omitzero"`
	Statuses []Assignment `json:"statuses"`
	// OmittedManifests is the number of reported manifests that are neither assigned nor listed, because
	// their number is limited.
	OmittedManifests int `json:"omitted_manifests,omitempty"`
}

// Assignment is the status of an assignment on a node.
type Assignment struct {
	fleet.RolloutStatus
	// Assigned is the time of the desired revision, zero if there is none.
	Assigned time.Time `json:"assigned,omitzero"`
	// FailedSince is the time of the first of the consecutive failures. It is zero if it does not fail or an
	// older agent does not report it.
	FailedSince time.Time `json:"failed_since,omitzero"`
}

// Began returns the time since which it is late or fails, zero for neither or if unknown.
func (a Assignment) Began() time.Time {
	if a.Late() {
		return a.Assigned
	}

	return a.FailedSince
}

// Late reports whether the node should run the revision but does not. An unreachable or stopped node is not
// late for the revision that it ran.
func (a Assignment) Late() bool {
	if a.Status == fleet.StatusUnreachable && a.Current == a.Desired && a.Outcome != "" {
		return false
	}

	return !a.Done() && a.Status != fleet.StatusUnassigned
}

// NewNode returns the data of a node with the statuses of its assignments, see fleet.Overview.
func NewNode(n model.Node, statuses []fleet.RolloutStatus, all *fleet.Assigned) Node {
	out := Node{Node: n, State: fleet.NodeStatus(n, statuses), Statuses: make([]Assignment, len(statuses))}
	for i, s := range statuses {
		out.Statuses[i] = Assignment{RolloutStatus: s, Assigned: all.Assigned(s.Key)}
		if s.Status == fleet.StatusFailed {
			out.Statuses[i].FailedSince = n.Manifests[s.Key].FailedSince
		}
	}
	out.Since = out.since()

	return out
}

// Otherwise returns the state that a reachable node would have without its pause.
func (n *Node) Otherwise() fleet.Status {
	return fleet.Worst(func(yield func(fleet.Status) bool) {
		for i := range n.Statuses {
			if !yield(n.Statuses[i].Status) {
				return
			}
		}
	})
}

// BeganAt reports whether Since is the beginning of the state. Older agents do not report since when they
// fail.
func (n *Node) BeganAt() bool {
	return n.State != fleet.StatusFailed || !slices.ContainsFunc(n.Statuses, func(s Assignment) bool {
		return s.Status == fleet.StatusFailed && n.Manifests[s.Key].FailedSince.IsZero()
	})
}

// since returns Since.
func (n *Node) since() time.Time {
	switch n.State {
	case fleet.StatusUnreadable, fleet.StatusStopped, fleet.StatusUnreachable:
		return n.Heard
	case fleet.StatusPaused:
		return n.Paused.At
	}
	var since time.Time
	if n.State != fleet.StatusFailed && n.State != fleet.StatusRejected && n.State != fleet.StatusPending {
		return since
	}
	for _, s := range n.Statuses {
		at := cmp.Or(n.Manifests[s.Key].FailedSince, s.At)
		if s.Late() {
			at = s.Assigned
		}
		if s.Status == n.State && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}

	return since
}
