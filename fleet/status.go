package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// Status is the status of an assignment on a node.
type Status string

// The statuses. Up to date, failed, overridden and not applicable are final;
// rejected changes only with another push.
const (
	// StatusUpToDate means that the node runs the revision.
	StatusUpToDate Status = "up-to-date"
	// StatusFailed means that the node runs the revision with failures.
	StatusFailed Status = "failed"
	// StatusOverridden means that another assignment of the same name applies to the node.
	StatusOverridden Status = "overridden"
	// StatusNotApplicable means that the condition is false on the node, or the assignment expired.
	StatusNotApplicable Status = "not-applicable"
	// StatusRejected means that the node rejected the revision, or would not accept its active revision
	// again.
	StatusRejected Status = "rejected"
	// StatusPending means that the node does not run the revision yet.
	StatusPending Status = "pending"
	// StatusUnreachable means that the node was not seen recently.
	StatusUnreachable Status = "unreachable"
	// StatusUnreadable means that the state of the node cannot be read, so its status is unknown.
	StatusUnreadable Status = "unreadable"
	// StatusUnassigned means that the node runs a manifest without an assignment.
	StatusUnassigned Status = "unassigned"
)

// RolloutStatus is the status of one assignment on one node.
type RolloutStatus struct {
	Node   string `json:"node"`
	Key    string `json:"key"`
	Status Status `json:"status"`
	// Desired and Current are revisions, 0 for none: the assigned revision, and the revision that ran last,
	// with its Outcome and At. A paused node activates revisions without running them.
	Desired uint64        `json:"desired"`
	Current uint64        `json:"current"`
	Outcome model.Outcome `json:"outcome,omitempty"`
	At      time.Time     `json:"at,omitzero"`
	// Reason is the reason why the node is not up to date, or the flapping resource of the manifest.
	Reason string `json:"reason,omitempty"`
	// Paused is the pause that delays the revision, nil for none.
	Paused *model.Paused `json:"-"`
}

// Applies reports whether the node is a target of the assignment.
func (s RolloutStatus) Applies() bool {
	return s.Status != StatusOverridden && s.Status != StatusNotApplicable
}

// Done reports whether the status is final.
func (s RolloutStatus) Done() bool {
	return s.Status == StatusUpToDate || s.Status == StatusFailed || !s.Applies()
}

// Rollout contains the assignments of one name. One of them applies to a node.
type Rollout struct {
	Entries []model.Entry
	// Keys selects some of them. If it is empty, it selects all.
	Keys []string
	// Nodes selects nodes by name. If it is nil, it selects all.
	Nodes map[string]bool
	// Later are the digests of later revisions, by key and revision. A higher
	// number alone proves nothing: a recreated bucket counts from 1.
	Later map[string]map[uint64]string
}

// Statuses returns the statuses of a rollout, by node and key.
func (r Rollout) Statuses(nodes []model.Node) []RolloutStatus {
	all := NewAssigned(r.Entries)
	var out []RolloutStatus
	for _, n := range nodes {
		if !r.selectsNode(n.Node) {
			continue
		}
		if n.Unreadable != "" {
			out = append(out, r.unreadable(n)...)
			continue
		}
		v := newView(&n)
		out = r.appendStatuses(out, &v, all.of(&v))
	}
	known := map[string]bool{}
	for _, n := range nodes {
		known[n.Node] = true
	}
	for _, s := range all.NeverSeen(func(node string) bool { return known[node] }) {
		if r.selects(s.Key) && r.selectsNode(s.Node) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b RolloutStatus) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Key, b.Key)) })

	return out
}

func (r Rollout) selects(key string) bool { return len(r.Keys) == 0 || slices.Contains(r.Keys, key) }

func (r Rollout) selectsNode(node string) bool { return r.Nodes == nil || r.Nodes[node] }

// appendStatuses appends, by key, the status of the assignment of a name that applies to a node, of the
// skipped ones before it, and of selected ones after it. The assignments are in the order in which the node
// considers them.
func (r Rollout) appendStatuses(out []RolloutStatus, v *view, ordered []placed) []RolloutStatus {
	before := len(out)
	applies, held := "", ""
	for _, e := range ordered {
		s := RolloutStatus{Node: v.Node.Node, Key: e.Key, Desired: e.Revision}
		m := stateOf(&e.Entry, v.Node)
		switch {
		case applies != "":
			s.Status, s.Reason = StatusOverridden, applies+" applies to it instead"
			if len(r.Keys) == 0 {
				continue
			}
		case r.skipped(&e.Entry, &m):
			// The node continues with the next assignment.
			s.Status, s.Reason = whySkipped(e, v, held)
		default:
			s = r.status(&e.Entry, v.Node, &m)
			// An assignment that the node never read, or that was never valid there, does not replace the
			// next one.
			if v.isUnread(e.target, e.Key) {
				break
			}
			if m.Revision > 0 || (s.Status != StatusRejected && s.Status != StatusPending) || v.Manifests[e.Key].Late == "" {
				applies = e.Key
			}
			held = e.Key
		}
		if r.selects(e.Key) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out[before:], func(a, b RolloutStatus) int { return cmp.Compare(a.Key, b.Key) })

	return out
}

// skipped reports whether a node knows and accepts a revision, but does not run it, by its state of the
// assignment. Earlier runs do not matter.
func (r Rollout) skipped(e *model.Entry, m *model.ManifestState) bool {
	return r.reaches(e, m.Seen, "") && m.Late == "" && m.Outcome != model.OutcomeRefused
}

// whySkipped returns the status and the reason of an assignment that a node does not run. held is an earlier
// assignment that the node rejected.
func whySkipped(e placed, v *view, held string) (Status, string) {
	switch ahead := v.activeAhead(e.target, e.name); {
	case ahead != "":
		return StatusPending, Shorten(ahead) + " still runs instead"
	case held != "":
		return StatusNotApplicable, "skipped: " + held + " holds its place, its condition is false, or it expired"
	default:
		return StatusNotApplicable, skippedReason
	}
}

// skippedReason is the reason of a skipped assignment with unknown terms.
const skippedReason = "skipped: its condition is false, or it expired"

// ExplainSkipped adds the terms to the reasons of skipped assignments. It calls get once for each key.
func ExplainSkipped(ctx context.Context, get func(ctx context.Context, key string) (model.Entry, error), lists ...[]RolloutStatus) error {
	entries := map[string]model.Entry{}
	for _, statuses := range lists {
		for i, s := range statuses {
			if s.Reason != skippedReason {
				continue
			}
			e, known := entries[s.Key]
			if !known {
				var err error
				if e, err = get(ctx, s.Key); err != nil && !errors.Is(err, model.ErrNotFound) {
					return err
				}
				entries[s.Key] = e
			}
			if e.Revision == s.Desired {
				statuses[i].Reason = skippedBy(e)
			}
		}
	}

	return nil
}

// skippedBy returns the term for which a node skips an assignment.
func skippedBy(e model.Entry) string {
	a, _ := document.DecodeAssigned(e.Key, e.Value)
	switch {
	case !a.Expires.IsZero() && !a.Expires.After(time.Now()):
		return "skipped: expired at " + a.Expires.Local().Format(model.TimeFormat)
	case a.When != "":
		return "skipped: its condition is false: " + Shorten(a.When)
	default:
		return skippedReason
	}
}

// stateOf returns a node's state of an assignment, without data from before the bucket was recreated.
func stateOf(e *model.Entry, n *model.Node) model.ManifestState {
	m := n.Manifests[e.Key]
	if m.Seen == e.Revision && !m.SeenAt.IsZero() && !e.Time.IsZero() && !m.SeenAt.Equal(e.Time) {
		m.Seen, m.Late = 0, ""
	}

	return m
}

// reaches reports whether a node's revision is that of an entry or a later one;
// an unknown digest matches.
func (r Rollout) reaches(e *model.Entry, revision uint64, digest string) bool {
	want, known := e.Digest, revision == e.Revision
	if revision > e.Revision {
		want, known = r.Later[e.Key][revision]
	}

	return known && (want == "" || digest == "" || want == digest)
}

// status compares a node's state with the assignment that applies to it.
func (r Rollout) status(e *model.Entry, n *model.Node, m *model.ManifestState) RolloutStatus {
	runs, last := r.reaches(e, m.Revision, m.Digest), m.Last()
	s := RolloutStatus{Node: n.Node, Key: e.Key, Desired: e.Revision, Current: last.Revision, Outcome: last.Outcome, At: last.At}
	switch {
	case n.Stopped() || n.Silent:
		s.Status, s.Reason = StatusUnreachable, absence(n)
	case runs && m.Outcome == model.OutcomeFailed:
		s.Status, s.Reason = StatusFailed, failures(m)
		if rejected(m) {
			s.Reason += "; " + late(m)
		}
		if text := flapping(n, e.Key); text != "" {
			s.Reason += "; " + text
		}
	case runs && rejected(m):
		s.Status, s.Reason = StatusRejected, fmt.Sprintf("%s; revision %d stays in force", rejection(m), m.Revision)
	case runs && m.Outcome != "":
		s.Status, s.Reason = StatusUpToDate, flapping(n, e.Key)
	case r.reaches(e, m.Seen, "") && rejected(m):
		s.Status, s.Reason = StatusRejected, rejection(m)
	default:
		s.Status, s.Reason = StatusPending, pending(e, m, runs)
		if m.Revision == 0 && m.Seen == 0 && n.Message != "" {
			s.Reason += ": " + Shorten(n.Message)
		}
		if n.Paused != nil {
			s.Reason = Shorten(pausedFor(n.Paused)) + "; " + s.Reason
			if runs {
				s.Paused = n.Paused
			}
		}
	}

	return s
}

// pausedFor describes the pause of a node: its end and its author.
func pausedFor(p *model.Paused) string {
	text, isPaused := strings.CutPrefix(p.String(), "paused")
	if isPaused && p.Until.IsZero() {
		return "paused without end" + text
	}

	return p.String()
}

// maxSaid limits the bytes of a node's text in a reason. Agents write less.
const maxSaid = 5 << 10

// Shorten returns a node's text, cut if it is longer than any agent writes, because it may occur in many
// reasons.
func Shorten(text string) string {
	if len(text) <= maxSaid {
		return text
	}

	return strings.ToValidUTF8(text[:maxSaid], "") + " … (cut)"
}

func flapping(n *model.Node, key string) string {
	text, more := "", 0
	for _, f := range n.Flapping[:min(len(n.Flapping), model.MaxFlapping)] {
		switch {
		case f.Manifest != key:
		case text != "":
			more++
		default:
			text = "flapping: " + f.Resource.String() + ", " + f.By()
		}
	}
	if more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}

	return Shorten(text)
}

func absence(n *model.Node) string {
	reason := "not seen"
	if n.Stopped() {
		reason = "stopped, not seen"
	}
	if !n.Heard.IsZero() {
		reason += " since " + n.Heard.Local().Format(model.TimeFormat)
	}

	return reason
}

// failures returns the first error of a run, and the counts if there is room. A run may fail before its first
// resource.
func failures(m *model.ManifestState) string {
	reason, _, _ := strings.Cut(Shorten(m.Error), "\n")
	switch {
	case reason == "":
		return m.Counts.Text()
	case m.Counts.Failed+m.Counts.Unmet == 0:
		return reason
	case m.Counts.Failed > 1:
		reason += fmt.Sprintf(", and %d more", m.Counts.Failed-1)
	}

	return reason + " (" + m.Counts.Text() + ")"
}

// pending returns the reason why a reachable node does not run a revision.
func pending(e *model.Entry, m *model.ManifestState, runs bool) string {
	switch {
	case m.Late != "":
		return late(m)
	case runs && m.Error != "":
		return Shorten(m.Error)
	case runs:
		return "accepted, first run not finished"
	case m.Revision == 0:
		return "not acknowledged yet"
	case m.Revision >= e.Revision:
		return fmt.Sprintf("still at revision %d of another bucket", m.Revision)
	default:
		return fmt.Sprintf("still at revision %d", m.Revision)
	}
}

// refusedPrefix is the prefix of a rejection's reason. Nodes publish no separate field for it.
const refusedPrefix = string(model.OutcomeRefused) + ": "

func rejected(m *model.ManifestState) bool {
	return m.Outcome == model.OutcomeRefused || strings.HasPrefix(m.Late, refusedPrefix)
}

func rejection(m *model.ManifestState) string {
	return Shorten(cmp.Or(strings.TrimPrefix(m.Late, refusedPrefix), string(StatusRejected)))
}

// late returns the reason why the newest revision is not active, in the word of the statuses.
func late(m *model.ManifestState) string {
	if reason, ok := strings.CutPrefix(m.Late, refusedPrefix); ok {
		return string(StatusRejected) + ": " + Shorten(reason)
	}

	return Shorten(m.Late)
}

// Rejection is the reason why a node rejected the newest revision of a key.
type Rejection struct {
	Node   string `json:"node"`
	Reason string `json:"reason"`
}

// Rejections returns the nodes that rejected a revision, or would not accept their active revision again, by
// node.
func Rejections(e model.Entry, nodes []model.Node) []Rejection {
	var out []Rejection
	for _, n := range nodes {
		if m := stateOf(&e, &n); rejected(&m) && max(m.Seen, m.Revision) == e.Revision {
			out = append(out, Rejection{n.Node, rejection(&m)})
		}
	}

	return out
}
