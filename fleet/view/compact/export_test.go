package compact

// Kept returns how many values are kept.
func (s *Same[T]) Kept() int { return len(s.byHash) }
