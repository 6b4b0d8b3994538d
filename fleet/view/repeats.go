package view

import "hash/maphash"

// rememberedReports is the minimum number of remembered reports. It exceeds the reports within the minutes in
// which a node may repeat one.
const rememberedReports = 100_000

// repeats finds repeated reports by hashes that no node can predict.
type repeats struct {
	seed maphash.Seed
	// recent becomes before when it is full.
	recent, before map[uint64]struct{}
}

func newRepeats() repeats {
	return repeats{seed: maphash.MakeSeed(), recent: map[uint64]struct{}{}}
}

// seenBefore reports whether this report of a node was already added.
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

// hashOf returns a hash of a node and an id that the node chose.
func hashOf(seed maphash.Seed, node, id string) uint64 {
	const odd = 0x9e3779b97f4a7c15

	return maphash.String(seed, node)*odd + maphash.String(seed, id)
}
