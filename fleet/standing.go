package fleet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// NodeLister knows the nodes.
type NodeLister interface {
	// Nodes gives all nodes, also those that fell silent, by name.
	Nodes(ctx context.Context) ([]model.Node, error)
}

// Stand is how a node stands with an assignment.
type Stand string

// The stands. Arrived, failed, overridden and exempt end the waiting for a
// node; refused does unless somebody pushes again.
const (
	// StandArrived is a node that runs the revision.
	StandArrived Stand = "arrived"
	// StandFailed is a node that runs the revision, and something in it failed.
	StandFailed Stand = "failed"
	// StandOverridden is a node that another assignment of the same name applies to.
	StandOverridden Stand = "overridden"
	// StandExempt is a node that the assignment does not apply to, because its
	// condition is false there or its time is over.
	StandExempt Stand = "exempt"
	// StandRefused is a node that does not take the revision.
	StandRefused Stand = "refused"
	// StandLate is a node that has not come to the revision yet.
	StandLate Stand = "late"
	// StandSilent is a node that is not heard of.
	StandSilent Stand = "silent"
	// StandUnassigned is a node that runs what is not assigned.
	StandUnassigned Stand = "unassigned"
)

// Standing is how one node stands with one assignment.
type Standing struct {
	Node  string `json:"node"`
	Key   string `json:"key"`
	Stand Stand  `json:"stand"`
	// Want is the revision it should run, Has the one it does; 0 is none.
	Want    uint64        `json:"want"`
	Has     uint64        `json:"has"`
	Outcome model.Outcome `json:"outcome,omitempty"`
	At      time.Time     `json:"at,omitzero"`
	// Why says what a node that has not arrived waits for.
	Why string `json:"why,omitempty"`
}

// Done says that there is nothing more to wait for.
func (s Standing) Done() bool {
	return s.Stand == StandArrived || s.Stand == StandFailed || s.Stand == StandOverridden || s.Stand == StandExempt
}

// Goal is what is waited for: that every target runs an assignment.
type Goal struct {
	// Entries are all assignments of one name, because only one of them applies to a node.
	Entries []model.Entry
	// Keys are those that are waited for; none means all.
	Keys []string
	// Later are the digests of revisions that came after that of an entry, by key
	// and revision. A higher number alone does not make a revision a later one: a
	// bucket that is made anew begins again.
	Later map[string]map[uint64]string
}

// Standings tells how the targets of a goal stand, by node.
func (g Goal) Standings(nodes []model.Node) []Standing {
	var out []Standing
	known := map[string]bool{}
	for _, n := range nodes {
		known[n.Node] = true
		out = append(out, g.standingsOf(n)...)
	}
	for _, e := range g.Entries {
		if t, _, err := ParseKey(e.Key); err == nil && t.Node != "" && !known[t.Node] && g.wants(e.Key) {
			out = append(out, Standing{Node: t.Node, Key: e.Key, Stand: StandSilent, Want: e.Revision, Why: "was never heard of: is its agent running, with this name?"})
		}
	}
	slices.SortFunc(out, func(a, b Standing) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Key, b.Key)) })

	return out
}

// Unassigned gives what a node runs and none of all assignments is, by key: it
// has not heard yet that it ended, or the bucket was made anew.
func Unassigned(n model.Node, assigned []model.Entry) []Standing {
	var out []Standing
	for _, key := range slices.Sorted(maps.Keys(n.Manifests)) {
		m := n.Manifests[key]
		if m.Revision == 0 || slices.ContainsFunc(assigned, func(e model.Entry) bool { return e.Key == key }) {
			continue
		}
		out = append(out, Standing{Node: n.Node, Key: key, Stand: StandUnassigned, Has: m.Revision, Outcome: m.Outcome, At: m.At, Why: "runs it, and it is not assigned"})
	}

	return out
}

func (g Goal) wants(key string) bool { return len(g.Keys) == 0 || slices.Contains(g.Keys, key) }

// standingsOf gives the standing of a node with the assignment that applies to
// it, with those before it that do not, and with those behind it that were asked
// for by key.
func (g Goal) standingsOf(n model.Node) []Standing {
	var out []Standing
	applies := ""
	for _, e := range g.inOrder(n) {
		s := Standing{Node: n.Node, Key: e.Key, Want: e.Revision}
		switch {
		case applies != "":
			s.Stand, s.Why = StandOverridden, applies+" applies to it instead"
			if len(g.Keys) == 0 {
				continue
			}
		case g.exempt(e, n):
			// A node goes on to the next where one does not apply to it.
			s.Stand, s.Why = StandExempt, "does not apply there: its condition is false, or its time is over"
		default:
			s = g.standing(e, n)
			// One that was never valid there leaves the next in force.
			if s.Has > 0 || (s.Stand != StandRefused && s.Stand != StandLate) || n.Manifests[e.Key].Late == "" {
				applies = e.Key
			}
		}
		if g.wants(e.Key) {
			out = append(out, s)
		}
	}

	return out
}

// inOrder gives the assignments that are for a node, in the order in which it
// looks at them.
func (g Goal) inOrder(n model.Node) []model.Entry {
	places := map[string]int{}
	var out []model.Entry
	for _, e := range g.Entries {
		if t, _, err := ParseKey(e.Key); err == nil {
			if at := order(t, n.NodeState); at >= 0 {
				places[e.Key] = at
				out = append(out, e)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b model.Entry) int { return cmp.Compare(places[a.Key], places[b.Key]) })

	return out
}

// exempt says that a node knows of a revision, has nothing against it, and does
// not put it in force. What it ran of it before does not count.
func (g Goal) exempt(e model.Entry, n model.Node) bool {
	m := n.Manifests[e.Key]

	return g.reaches(e, m.Seen, "") && m.Late == "" && m.Outcome != model.OutcomeRefused
}

// reaches says that a revision that a node names is that of an entry or a later
// one; a digest that is not known does not matter.
func (g Goal) reaches(e model.Entry, revision uint64, digest string) bool {
	want, known := e.Digest, revision == e.Revision
	if revision > e.Revision {
		want, known = g.Later[e.Key][revision]
	}

	return known && (want == "" || digest == "" || want == digest)
}

// standing compares what a node says of itself with what it should run.
func (g Goal) standing(e model.Entry, n model.Node) Standing {
	m := n.Manifests[e.Key]
	runs := g.reaches(e, m.Revision, m.Digest)
	s := Standing{Node: n.Node, Key: e.Key, Want: e.Revision, Has: m.Revision, Outcome: m.Outcome, At: m.At}
	switch {
	case runs && m.Outcome == model.OutcomeFailed:
		s.Stand, s.Why = StandFailed, failures(m)
	case runs && m.Outcome != "":
		s.Stand = StandArrived
	case n.Stopped() || n.Silent:
		s.Stand, s.Why = StandSilent, "not heard of"
		if n.Stopped() {
			s.Why = "stopped, not heard of"
		}
		if !n.Heard.IsZero() {
			s.Why += " since " + n.Heard.UTC().Format(time.RFC3339)
		}
	case g.reaches(e, m.Seen, "") && refused(m):
		s.Stand, s.Why = StandRefused, cmp.Or(m.Late, "refused it")
	default:
		s.Stand, s.Why = StandLate, lateness(e, m, runs)
		if m.Revision == 0 && m.Seen == 0 && n.Message != "" {
			s.Why += ": " + n.Message
		}
	}

	return s
}

// refused says that a node will not take what it has seen: the reason it gives
// says so first.
func refused(m model.ManifestState) bool {
	return m.Outcome == model.OutcomeRefused || strings.HasPrefix(m.Late, string(model.OutcomeRefused))
}

// failures says what failed, and the first reason for it. A run may have failed
// before it came to any resource.
func failures(m model.ManifestState) string {
	c := m.Counts
	reason, _, _ := strings.Cut(m.Error, "\n")
	switch counted := fmt.Sprintf("%d of %d resources failed", c.Failed+c.Unmet, c.Total); {
	case reason == "":
		return counted
	case c.Failed+c.Unmet == 0:
		return reason
	default:
		return counted + ": " + reason
	}
}

// lateness says in words why a node that is there does not run a revision.
func lateness(e model.Entry, m model.ManifestState, runs bool) string {
	switch {
	case m.Late != "":
		return m.Late
	case runs:
		return "has it, and has not run it to its end yet"
	case m.Revision == 0:
		return "has not said anything of it yet"
	case m.Revision >= e.Revision:
		return fmt.Sprintf("still at revision %d of another bucket", m.Revision)
	default:
		return fmt.Sprintf("still at revision %d", m.Revision)
	}
}
