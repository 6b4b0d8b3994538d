package view

import "hash/maphash"

// rememberedReports is how many reports are remembered at least, so that one counts once: far
// more than arrive within the minutes in which a node may send one again.
const rememberedReports = 100_000

// repeats finds reports that are there already, by hashes that no node can foresee.
type repeats struct {
	seed maphash.Seed
	// recent becomes before when it is full.
	recent, before map[uint64]struct{}
}

func newRepeats() repeats {
	return repeats{seed: maphash.MakeSeed(), recent: map[uint64]struct{}{}}
}

// seenBefore reports whether it got this report of a node before.
func (r *repeats) seenBefore(node, id string) bool {
	hash := hashOf(r.seed, node, id)
	if _, seen := r.recent[hash]; seen {
		return true
	}
	if _, seen := r.before[hash]; seen {
		return true
	}
	if len(r.recent) >= rememberedReports {
		r.before, r.recent = r.recent, make(map[uint64]struct{}, rememberedReports)
	}
	r.recent[hash] = struct{}{}

	return false
}

// hashOf returns a hash of what a node gave an id.
func hashOf(seed maphash.Seed, node, id string) uint64 {
	const odd = 0x9e3779b97f4a7c15

	return maphash.String(seed, node)*odd + maphash.String(seed, id)
}
