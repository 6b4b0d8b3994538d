package assign

import "slices"

// LatestEvents stores the newest events of a node in bounded memory.
type LatestEvents struct {
	// Most is the number of retained events. At times twice as many are retained.
	Most int
	// Dropped is the number of dropped events.
	Dropped int
	kept    []NodeEvent
}

// Add adds an event. The order does not matter.
func (l *LatestEvents) Add(e NodeEvent) {
	if l.kept = append(l.kept, e); len(l.kept) >= 2*l.Most {
		l.drop()
	}
}

// Sorted returns the retained events together with others, sorted by sort. Retained events displace none of
// the others.
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
