package view

import (
	"hash/maphash"
	"math"
	"time"
)

// maxSame is how many values are shared at most: nodes choose them.
const maxSame = 4096

// same are values that many things have in common, each kept once, by hashes that no node can foresee.
type same[T comparable] struct {
	seed   maphash.Seed
	byHash map[uint64]*T
}

func newSame[T comparable]() same[T] {
	return same[T]{maphash.MakeSeed(), map[uint64]*T{}}
}

// share returns an equal value that is kept already, where there is one. Nobody may change it.
func (s *same[T]) share(v T) *T {
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

// instant is a time in a third of the memory, which ends in the year 2262.
type instant int64

// never is the zero time.
const never instant = math.MinInt64

func instantOf(t time.Time) instant {
	const perSecond = int64(time.Second)
	switch seconds := t.Unix(); {
	case t.IsZero():
		return never
	case seconds > math.MaxInt64/perSecond-1:
		return math.MaxInt64
	case seconds < math.MinInt64/perSecond+1:
		return never + 1
	}

	return instant(t.UnixNano())
}

func (i instant) time() time.Time {
	if i == never {
		return time.Time{}
	}

	return time.Unix(0, int64(i)).UTC()
}
