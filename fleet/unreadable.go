package fleet

import "github.com/musterfleet/muster/model"

// MayInclude reports whether a node is the target or may be in its group: the groups of a node with an
// unreadable state may be unknown.
func (t Target) MayInclude(n model.Node) bool {
	return t.Includes(n.NodeState) || t.Group != "" && n.Unreadable != "" && n.Groups == nil
}

// unreadable returns the status of each assignment that may be for a node whose state
// cannot be read.
func (r Rollout) unreadable(n model.Node) []RolloutStatus {
	var out []RolloutStatus
	for _, e := range r.Entries {
		if t, _, err := ParseKey(e.Key); err == nil && t.MayInclude(n) && r.selects(e.Key) {
			out = append(out, RolloutStatus{Node: n.Node, Key: e.Key, Status: StatusUnreadable, Desired: e.Revision, Reason: WhyUnreadable(n)})
		}
	}

	return out
}

// WhyUnreadable returns the reason why the state of a node cannot be read, empty if it can.
func WhyUnreadable(n model.Node) string {
	if n.Unreadable == "" {
		return ""
	}

	return "its state cannot be read: " + said(n.Unreadable)
}
