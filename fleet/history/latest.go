package history

import "slices"

// Latest keeps the latest of any number of events, in bounded memory: a node may report any number.
type Latest struct {
	// Most is how many are kept, twice as many at times.
	Most int
	// Dropped is how many were not kept.
	Dropped int
	kept    []Event
}

// Add adds an event, which may come in any order.
func (l *Latest) Add(e Event) {
	if l.kept = append(l.kept, e); len(l.kept) >= 2*l.Most {
		l.drop()
	}
}

// Sorted returns those that are kept and some others, as the function does: what is kept displaces none
// of these.
func (l *Latest) Sorted(others ...Event) []Event {
	if len(l.kept) > l.Most {
		l.drop()
	}

	return Sorted(slices.Concat(others, l.kept))
}

func (l *Latest) drop() {
	l.kept = Sorted(l.kept)
	if surplus := len(l.kept) - l.Most; surplus > 0 {
		l.Dropped += surplus
		l.kept = append([]Event(nil), l.kept[surplus:]...)
	}
}
