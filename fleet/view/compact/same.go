package compact

import "hash/maphash"

// maxSame is how many values are shared at most: nodes choose them.
const maxSame = 4096

// Same are values that many things have in common, each kept once, by hashes that no node can foresee.
type Same[T comparable] struct {
	seed   maphash.Seed
	byHash map[uint64]*T
}

// NewSame returns one that has none.
func NewSame[T comparable]() Same[T] {
	return Same[T]{maphash.MakeSeed(), map[uint64]*T{}}
}

// Share returns an equal value that is kept already, where there is one. Nobody may change it.
func (s *Same[T]) Share(v T) *T {
	hash := maphash.Comparable(s.seed, v)
	known, is := s.byHash[hash]
	if is && *known == v {
		return known
	}
	if len(s.byHash) >= maxSame {
		clear(s.byHash)
	}
	kept := v
	s.byHash[hash] = &kept

	return &kept
}
