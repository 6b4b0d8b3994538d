package assign

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// Ran contains the nodes that ran a revision, from reports.
type Ran struct {
	// Nodes are the nodes that ran it, Failed the nodes whose last run of it failed.
	Nodes  int `json:"nodes"`
	Failed int `json:"failed"`
	// Rejected are the nodes that rejected it, from reports and states.
	Rejected int `json:"rejected"`
	// Now are the nodes whose last run was of it, from their states.
	Now int `json:"now"`
	// First and Last are the times when the first and the last node ran it for the first time.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
}

// Rollout counts the nodes that ran revisions.
type Rollout struct {
	revisions map[place]*Revision
	nodes     map[place]map[string]*ran
	// full counts the runs of each node and outcome, of any key.
	full map[string]int
}

// place identifies a revision of a key.
type place struct {
	key      string
	revision uint64
}

// ran is the result of a revision on one node.
type ran struct {
	failed, rejected, ran bool
	first                 time.Time
}

// NewRollout returns a Rollout that counts the nodes of these revisions and sets their Ran.
func NewRollout(all []Revision) *Rollout {
	r := &Rollout{map[place]*Revision{}, map[place]map[string]*ran{}, map[string]int{}}
	for i := range all {
		at := place{all[i].Key, all[i].Revision}
		r.revisions[at], r.nodes[at] = &all[i], map[string]*ran{}
	}

	return r
}

// Add counts a report of a run. The reports of a node come in stream order. A revision counts with its
// digest, because a recreated bucket repeats numbers.
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

// node returns the result of a revision on a node.
func (r *Rollout) node(at place, name string) *ran {
	n := r.nodes[at][name]
	if n == nil {
		n = &ran{}
		r.nodes[at][name] = n
	}

	return n
}

// addState counts the state of a node: its last run or its rejection of a revision. A report of a rejection
// may be missing, because nodes limit them.
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

// Finish adds the states of the nodes and sets the results. It returns the number of nodes with so many
// reports of one outcome that older ones may be missing, if the stream stores only perSubject of each; zero
// for no limit.
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
