package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// Node is what is known of one node.
type Node struct {
	model.Node
	// State is its fleet.NodeStatus.
	State fleet.Status `json:"state"`
	// Since is when it was last seen where it is away, when the oldest revision was assigned
	// that is pending or rejected, and since when runs fail, which older agents do not report:
	// of them it is when the last one ended; else zero.
	Since    time.Time    `json:"since,omitzero"`
	Statuses []Assignment `json:"statuses"`
	// OmittedManifests is the number of reported manifests that are neither assigned nor listed: a server bounds their
	// number.
	OmittedManifests int `json:"omitted_manifests,omitempty"`
}

// Assignment is the status of an assignment on a node.
type Assignment struct {
	fleet.RolloutStatus
	// Assigned is when the desired revision was assigned; zero where nothing is.
	Assigned time.Time `json:"assigned,omitzero"`
	// FailedSince is since when it fails, zero where it does not, or nobody knows: older agents do not report that.
	FailedSince time.Time `json:"failed_since,omitzero"`
}

// Began returns since when it is late, or fails; zero where it does neither, or nobody knows.
func (a Assignment) Began() time.Time {
	if a.Late() {
		return a.Assigned
	}

	return a.FailedSince
}

// Late reports whether the node should run the revision, and does not. One that is away is not
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

// Otherwise returns what the state of a reachable node would be if it were not paused.
func (n *Node) Otherwise() fleet.Status {
	return fleet.Worst(func(yield func(fleet.Status) bool) {
		for i := range n.Statuses {
			if !yield(n.Statuses[i].Status) {
				return
			}
		}
	})
}

// BeganAt reports whether Since is when the state began: an older agent does not report since
// when it fails.
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
