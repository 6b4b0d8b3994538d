package view

import "hash/maphash"

// maxSame limits the shared values, because nodes choose them.
const maxSame = 4096

// interned stores values that many entries share, each once, by hashes that no node can predict.
type interned[T comparable] struct {
	seed   maphash.Seed
	byHash map[uint64]*T
}

// newInterned returns an empty Same.
func newInterned[T comparable]() interned[T] {
	return interned[T]{maphash.MakeSeed(), map[uint64]*T{}}
}

// Share returns the stored value that equals a value. Do not change it.
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
