package view

import (
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
)

// manifestState is a compact model.ManifestState. A fleet has one for each manifest of each node.
type manifestState struct {
	*sameManifest
	at, failedSince instant
	// rare is nil for most.
	rare *rareState
}

// sameManifest contains fields that the manifests of many nodes share.
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
}

func (s *nodeState) name() string { return s.Node.Node.Node }

// manifest returns the status of a manifest on the node, or the zero value.
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

// full returns the complete node.
func (s *nodeState) full() Node {
	out := s.Node
	out.Node = s.reported(make(map[string]model.ManifestState, len(s.manifests)))

	return out
}

// nodeStates are the compact states of nodes.
type nodeStates struct {
	strings internedTexts
	same    interned[sameManifest]
}

func newNodeStates() nodeStates { return nodeStates{internedTexts{}, newInterned[sameManifest]()} }
