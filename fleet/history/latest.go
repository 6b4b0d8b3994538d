package history

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

// Sorted returns those that are kept, as Sorted does.
func (l *Latest) Sorted() []Event {
	l.drop()

	return l.kept
}

func (l *Latest) drop() {
	l.kept = Sorted(l.kept)
	if surplus := len(l.kept) - l.Most; surplus > 0 {
		l.Dropped += surplus
		l.kept = append([]Event(nil), l.kept[surplus:]...)
	}
}
