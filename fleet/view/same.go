package view

import "hash/maphash"

// maxSame is how many values are shared at most: nodes choose them.
const maxSame = 4096

// Same are values that many things have in common, each kept once, by hashes that no node can foresee.
type interned[T comparable] struct {
	seed   maphash.Seed
	byHash map[uint64]*T
}

// NewSame returns one that has none.
func newInterned[T comparable]() interned[T] {
	return interned[T]{maphash.MakeSeed(), map[uint64]*T{}}
}

// Share returns an equal value that is kept already, where there is one. Nobody may change it.
func (s *interned[T]) Share(v T) *T {
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
