package assign

import "slices"

// LatestEvents stores the newest events of a node in bounded memory.
type LatestEvents struct {
	// Most is how many are kept, twice as many at times.
	Most int
	// Dropped is how many were not kept.
	Dropped int
	kept    []NodeEvent
}

// Add adds an event, which may come in any order.
func (l *LatestEvents) Add(e NodeEvent) {
	if l.kept = append(l.kept, e); len(l.kept) >= 2*l.Most {
		l.drop()
	}
}

// Sorted returns those that are kept and some others, as the function does: what is kept displaces none
// of these.
func (l *LatestEvents) Sorted(others ...NodeEvent) []NodeEvent {
	if len(l.kept) > l.Most {
		l.drop()
	}

	return SortEvents(slices.Concat(others, l.kept))
}

func (l *LatestEvents) drop() {
	l.kept = SortEvents(l.kept)
	if surplus := len(l.kept) - l.Most; surplus > 0 {
		l.Dropped += surplus
		l.kept = append([]NodeEvent(nil), l.kept[surplus:]...)
	}
}
