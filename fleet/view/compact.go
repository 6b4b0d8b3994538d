package view

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unique"

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

// earliest and latest limit the times that nodes choose. JSON cannot represent years before 0 or after 9999.
var earliest, latest = time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)

// nodeTime returns a time that a node chose in UTC, limited to the years 1678 to 2261. A zero time stays zero.
func nodeTime(t time.Time) time.Time {
	switch {
	case t.IsZero():
		return time.Time{}
	case t.Before(earliest):
		return earliest
	case t.After(latest):
		return latest
	default:
		return t.UTC()
	}
}

// compact limits the texts and the times of a node and takes ownership of it. A node with too many groups, labels or rejected
// control documents is unreadable: it loses these and its manifests.
func compact(n model.Node) model.Node {
	if problem := excess(&n); problem != "" {
		n.Unreadable, n.Manifests = problem, nil
	}
	n.Version, n.Host = cutText(n.Version, maxWord), cutText(n.Host, maxWord)
	n.Message, n.Unreadable = cutText(n.Message, maxReason), cutText(n.Unreadable, maxReason)
	n.DroppedRanges = nil
	if n.Paused != nil {
		p := *n.Paused
		p.By, p.Reason, p.From = cutText(p.By, maxWord), cutText(p.Reason, maxReason), cutText(p.From, maxWord)
		p.Until, p.At = nodeTime(p.Until), nodeTime(p.At)
		n.Paused = &p
	}
	n.Started, n.At = nodeTime(n.Started), nodeTime(n.At)
	n.Flapping = n.Flapping[:min(len(n.Flapping), model.MaxFlapping)]
	for at := range n.Flapping {
		n.Flapping[at].Since = nodeTime(n.Flapping[at].Since)
	}
	for _, groups := range [][]string{n.Groups, n.UnreadGroups} {
		for at, g := range groups {
			groups[at] = cutText(g, maxWord)
		}
	}
	for _, texts := range []map[string]string{n.Labels, n.RejectedControl} {
		for key, text := range texts {
			texts[key] = cutText(text, maxReason)
		}
	}
	for key, m := range n.Manifests {
		m.Digest, m.Error, m.Late = cutText(m.Digest, maxWord), cutText(m.Error, maxReason), cutText(m.Late, maxReason)
		m.At, m.SeenAt, m.FailedSince = nodeTime(m.At), nodeTime(m.SeenAt), nodeTime(m.FailedSince)
		if m.Ran != nil {
			ran := *m.Ran
			ran.Digest, ran.Outcome = cutText(ran.Digest, maxWord), model.Outcome(cutText(string(ran.Outcome), maxWord))
			ran.At = nodeTime(ran.At)
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
		if !a.entries.Has(m.key()) {
			if unassigned++; unassigned > maxUnassigned {
				delete(n.Manifests, m.key())
				continue
			}
		}
		out = append(out, m)
	}

	return slices.Clip(out), len(manifests) - len(out)
}

// manifestState is a compact model.ManifestState. A fleet has one for each manifest of each node, and most nodes have
// the same ones apart from the time.
type manifestState struct {
	at     time.Time
	shared unique.Handle[sharedState]
}

// sharedState is a manifest without the time of its last run.
type sharedState struct {
	key   string
	state model.ManifestState
}

// compactManifests returns the compact manifests of a node, by key.
func compactManifests(all map[string]model.ManifestState) []manifestState {
	out := make([]manifestState, 0, len(all))
	for key, m := range all {
		at := m.At
		m.At = time.Time{}
		out = append(out, manifestState{at, unique.Make(sharedState{key, m})})
	}
	slices.SortFunc(out, func(a, b manifestState) int { return strings.Compare(a.key(), b.key()) })

	return out
}

func (m manifestState) key() string { return m.shared.Value().key }

// state returns the manifest as the node reported it.
func (m manifestState) state() model.ManifestState {
	out := m.shared.Value().state
	out.At = m.at

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

func (s *nodeState) manifest(key string) model.ManifestState {
	at, is := slices.BinarySearchFunc(s.manifests, key, func(m manifestState, key string) int { return strings.Compare(m.key(), key) })
	if !is {
		return model.ManifestState{}
	}

	return s.manifests[at].state()
}

// reported returns the node as it reported its state. It clears and reuses the given map for the manifests.
func (s *nodeState) reported(manifests map[string]model.ManifestState) model.Node {
	clear(manifests)
	for _, m := range s.manifests {
		manifests[m.key()] = m.state()
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
