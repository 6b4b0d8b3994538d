package attention

// Counted returns how many resources are counted of a kind.
func (t *Resources) Counted(k Kind) int { return len(t.counts[k]) }
