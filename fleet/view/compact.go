package view

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

const (
	// maxUnassigned limits the manifests of a node that are not assigned. Assigned manifests need no limit: operators
	// assign them.
	maxUnassigned = 2000
	// maxGroups, maxLabels and maxRejected limit the groups, the labels and the rejected control documents of a node.
	maxGroups   = 1000
	maxLabels   = 1000
	maxRejected = 100
	// maxReason limits the bytes of an error or a message in the state of a node.
	maxReason = 2000
)

// compact returns a node in compact form and takes ownership of it. A node with too many groups, labels or
// rejected control documents is unreadable: it loses these and its manifests.
func (s *nodeStates) compact(n model.Node) model.Node {
	i := s.strings
	if problem := excess(&n); problem != "" {
		n.Unreadable, n.Manifests = problem, nil
	}
	n.Protocol, n.Node, n.Version, n.Event = i.Share(n.Protocol), i.Share(n.Node), i.Share(cutText(n.Version, maxWord)), model.NodeEvent(i.Share(string(n.Event)))
	n.Host, n.Message, n.Unreadable = cutText(n.Host, maxWord), cutText(n.Message, maxReason), cutText(n.Unreadable, maxReason)
	n.DroppedRanges = nil
	if n.Paused != nil {
		p := *n.Paused
		p.By, p.Reason, p.From = cutText(p.By, maxWord), cutText(p.Reason, maxReason), cutText(p.From, maxWord)
		n.Paused = &p
	}
	n.Flapping = n.Flapping[:min(len(n.Flapping), model.MaxFlapping)]
	for at, g := range n.Groups {
		n.Groups[at] = i.Share(cutText(g, maxWord))
	}
	for at, g := range n.UnreadGroups {
		n.UnreadGroups[at] = i.Share(cutText(g, maxWord))
	}
	for key, value := range n.Labels {
		n.Labels[key] = i.Share(cutText(value, maxReason))
	}
	for key, why := range n.RejectedControl {
		n.RejectedControl[key] = i.Share(cutText(why, maxReason))
	}
	for key, m := range n.Manifests {
		m.Digest, m.Error, m.Late = cutText(m.Digest, maxWord), cutText(m.Error, maxReason), cutText(m.Late, maxReason)
		if m.Ran != nil {
			ran := *m.Ran
			ran.Digest, ran.Outcome = i.Share(cutText(ran.Digest, maxWord)), model.Outcome(i.Share(cutText(string(ran.Outcome), maxWord)))
			m.Ran = &ran
		}
		n.Manifests[key] = m
	}

	return n
}

// excess removes the groups, labels, pauses and rejected control documents of a node if they are too many. It returns the first
// problem, empty for none.
func excess(n *model.Node) string {
	problem := ""
	check := func(what, remedy string, count, most int, remove func()) {
		if count <= most {
			return
		}
		remove()
		if problem == "" {
			problem = fmt.Sprintf("it has %d %s, the limit is %d; %s", count, what, most, remedy)
		}
	}
	const inConfig = "remove some from its agent.yaml or with \"muster fleet "
	check("groups", inConfig+"group\"", len(n.Groups), maxGroups, func() { n.Groups = nil })
	check("unread groups", "permit the node to read them", len(n.UnreadGroups), maxGroups, func() { n.UnreadGroups = nil })
	check("labels", inConfig+"label\"", len(n.Labels), maxLabels, func() { n.Labels = nil })
	check("pauses", "resume some of its groups", len(n.PausedBy), maxGroups+1, func() { n.PausedBy = nil })
	check("rejected control documents", "remove them from the bucket", len(n.RejectedControl), maxRejected, func() { n.RejectedControl = nil })

	return problem
}

// cut removes manifests without an assignment from a node that has too many of them, and returns the number of removed
// manifests. It changes nothing before the assignments are known.
func (a *inventory) cut(n *model.Node, manifests []manifestState) ([]manifestState, int) {
	if !a.isAssigned || len(manifests) <= maxUnassigned {
		return manifests, 0
	}
	unassigned, out := 0, make([]manifestState, 0, len(manifests))
	for _, m := range manifests {
		if !a.entries.Has(m.key) {
			if unassigned++; unassigned > maxUnassigned {
				delete(n.Manifests, m.key)
				continue
			}
		}
		out = append(out, m)
	}

	return slices.Clip(out), len(manifests) - len(out)
}

// manifestState is a compact model.ManifestState. A fleet has one for each manifest of each node.
type manifestState struct {
	*sameManifest
	at, failedSince instant
	// rare is nil for most.
	rare *rareState
}

type sameManifest struct {
	key, digest string
	revision    uint64
	outcome     model.Outcome
	counts      model.Counts
}

// rareState contains fields of failed or late manifests.
type rareState struct {
	error, late string
	seen        uint64
	seenAt      instant
	ran         *model.RanRevision
}

// manifests returns the compact statuses of the manifests of a node, by key.
func (s *nodeStates) manifests(all map[string]model.ManifestState) []manifestState {
	if len(all) == 0 {
		return nil
	}
	out := make([]manifestState, 0, len(all))
	for key, m := range all {
		one := manifestState{at: instantOf(m.At), failedSince: instantOf(m.FailedSince)}
		one.sameManifest = s.same.Share(sameManifest{s.strings.Share(key), s.strings.Share(m.Digest), m.Revision, model.Outcome(s.strings.Share(string(m.Outcome))), m.Counts})
		if rare := (rareState{m.Error, m.Late, m.Seen, instantOf(m.SeenAt), m.Ran}); rare != (rareState{seenAt: never}) {
			one.rare = &rare
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b manifestState) int { return strings.Compare(a.key, b.key) })

	return out
}

// state returns the status as the node reported it.
func (m *manifestState) state() model.ManifestState {
	out := model.ManifestState{Revision: m.revision, Digest: m.digest, Outcome: m.outcome, At: m.at.Time(), Counts: m.counts, FailedSince: m.failedSince.Time()}
	if r := m.rare; r != nil {
		out.Error, out.Late, out.Seen, out.SeenAt, out.Ran = r.error, r.late, r.seen, r.seenAt.Time(), r.ran
	}

	return out
}

// nodeState is a compact node. Its pointers are replaced and never written through, so that readers need no lock.
type nodeState struct {
	// Node has no Manifests.
	Node
	// manifests are by key.
	manifests []manifestState
	// received is the time of the report.
	received time.Time
}

func (s *nodeState) name() string { return s.Node.Node.Node }

func (s *nodeState) statuses() iter.Seq[*fleet.RolloutStatus] {
	return each(s.Statuses, func(a *Assignment) *fleet.RolloutStatus { return &a.RolloutStatus })
}

func (s *nodeState) manifest(key string) model.ManifestState {
	at, is := slices.BinarySearchFunc(s.manifests, key, func(m manifestState, key string) int { return strings.Compare(m.key, key) })
	if !is {
		return model.ManifestState{}
	}

	return s.manifests[at].state()
}

// reported returns the node as it reported its state. It clears and reuses the given map for the manifests.
func (s *nodeState) reported(manifests map[string]model.ManifestState) model.Node {
	clear(manifests)
	for i := range s.manifests {
		manifests[s.manifests[i].key] = s.manifests[i].state()
	}
	n := s.Node.Node
	if n.Manifests = manifests; len(manifests) == 0 {
		n.Manifests = nil
	}

	return n
}

func (s *nodeState) full() Node {
	out := s.Node
	out.Node = s.reported(make(map[string]model.ManifestState, len(s.manifests)))

	return out
}

type nodeStates struct {
	strings internedTexts
	same    interned[sameManifest]
}
