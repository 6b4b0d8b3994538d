package assign

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// Ran is which nodes ran a revision, as far as the reports know.
type Ran struct {
	// Nodes are those that ran it, Failed those of them whose last run of it failed.
	Nodes  int `json:"nodes"`
	Failed int `json:"failed"`
	// Rejected are those that did not accept it, by their reports and states.
	Rejected int `json:"rejected"`
	// Now are those whose state says that it is what ran last.
	Now int `json:"now"`
	// First and Last are when the first and the last of the nodes ran it for the first time.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
}

// Rollout counts the nodes that ran revisions.
type Rollout struct {
	revisions map[place]*Revision
	nodes     map[place]map[string]*ran
	// full are the runs of each node and outcome, of the keys or not.
	full map[string]int
}

// place is a revision of a key.
type place struct {
	key      string
	revision uint64
}

// ran is what one node did with a revision.
type ran struct {
	failed, rejected, ran bool
	first                 time.Time
}

// NewRollout returns a count of the nodes that ran these revisions, whose Ran it sets.
func NewRollout(all []Revision) *Rollout {
	r := &Rollout{map[place]*Revision{}, map[place]map[string]*ran{}, map[string]int{}}
	for i := range all {
		at := place{all[i].Key, all[i].Revision}
		r.revisions[at], r.nodes[at] = &all[i], map[string]*ran{}
	}

	return r
}

// Add counts a report of a run; those of a node come in the order in which they were stored.
// A revision counts with its digest: the same number of a bucket that was created again is
// another one.
func (r *Rollout) Add(report model.Report) {
	r.full[report.Node+" "+string(report.Outcome)]++
	at := place{report.Manifest, report.Revision}
	revision := r.revisions[at]
	if revision == nil || report.Kind != model.KindRun || report.Digest != "" && report.Digest != revision.Digest {
		return
	}
	n := r.node(at, report.Node)
	if report.Outcome == model.OutcomeRefused {
		n.rejected = true
		return
	}
	if !n.ran {
		n.ran, n.first = true, report.Time
	}
	n.failed = report.Outcome == model.OutcomeFailed
}

// node returns what a node did with a revision.
func (r *Rollout) node(at place, name string) *ran {
	n := r.nodes[at][name]
	if n == nil {
		n = &ran{}
		r.nodes[at][name] = n
	}

	return n
}

// addState counts the state of a node: whether it ran a revision last, or rejects it. Nodes limit their reports of
// rejections, so a report may be missing.
func (r *Rollout) addState(at place, revision *Revision, n *model.Node) {
	m, is := n.Manifests[at.key]
	if !is {
		return
	}
	if last := m.Last(); last.Revision == at.revision && last.Digest == revision.Digest {
		revision.Ran.Now++
	}
	if m.Rejected() && m.Seen == at.revision && (m.SeenAt.IsZero() || revision.Time.IsZero() || m.SeenAt.Equal(revision.Time)) {
		r.node(at, n.Node).rejected = true
	}
}

// Finish sets what was counted, with the states of the nodes. It returns how many nodes have
// so many reports of one outcome that older ones may be gone, where the stream keeps only
// perSubject of each; zero for no such bound.
func (r *Rollout) Finish(states []model.Node, perSubject int) (full int) {
	for at, revision := range r.revisions {
		out := &revision.Ran
		for i := range states {
			r.addState(at, revision, &states[i])
		}
		for _, n := range r.nodes[at] {
			if n.rejected && !n.ran {
				out.Rejected++
			}
			if !n.ran {
				continue
			}
			out.Nodes++
			if n.failed {
				out.Failed++
			}
			if out.First.IsZero() || n.first.Before(out.First) {
				out.First = n.first
			}
			if n.first.After(out.Last) {
				out.Last = n.first
			}
		}
	}
	for _, count := range r.full {
		if perSubject > 0 && count >= perSubject {
			full++
		}
	}

	return full
}
