package view

import (
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
)

// manifestState is a model.ManifestState in little memory: a fleet has as many as it has nodes, times those that
// each runs.
type manifestState struct {
	*sameManifest
	at, failedSince instant
	// rare is nil for most.
	rare *rareState
}

// sameManifest is what the manifests of many nodes have in common.
type sameManifest struct {
	key, digest string
	revision    uint64
	outcome     model.Outcome
	counts      model.Counts
}

// rareState is what only a manifest has that fails, or that is late.
type rareState struct {
	error, late string
	seen        uint64
	seenAt      instant
	ran         *model.RanRevision
}

// manifests returns the statuses of the manifests of a node in little memory, by key.
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

// state is a node in little memory. What it points to is replaced and never changed, so that readers need no lock
// for it.
type nodeState struct {
	// Node is without its Manifests.
	Node
	// manifests are by key.
	manifests []manifestState
}

func (s *nodeState) name() string { return s.Node.Node.Node }

// manifest returns the status of a manifest on the node, the zero value where it has none.
func (s *nodeState) manifest(key string) model.ManifestState {
	at, is := slices.BinarySearchFunc(s.manifests, key, func(m manifestState, key string) int { return strings.Compare(m.key, key) })
	if !is {
		return model.ManifestState{}
	}

	return s.manifests[at].state()
}

// reported returns the node as it reported its state, with the statuses of its manifests in a map that is cleared before.
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

// full returns all that is known of the node.
func (s *nodeState) full() Node {
	out := s.Node
	out.Node = s.reported(make(map[string]model.ManifestState, len(s.manifests)))

	return out
}

// states keep the states of nodes in little memory.
type nodeStates struct {
	strings internedTexts
	same    interned[sameManifest]
}

func newNodeStates() nodeStates { return nodeStates{internedTexts{}, newInterned[sameManifest]()} }
