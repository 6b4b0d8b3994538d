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

// Together returns the events of several, as Sorted does. What one of them keeps displaces nothing of another.
func Together(all ...*Latest) []Event {
	var out []Event
	for _, l := range all {
		if len(l.kept) > l.Most {
			l.drop()
		}
		out = append(out, l.kept...)
	}

	return Sorted(out)
}

func (l *Latest) drop() {
	l.kept = Sorted(l.kept)
	if surplus := len(l.kept) - l.Most; surplus > 0 {
		l.Dropped += surplus
		l.kept = append([]Event(nil), l.kept[surplus:]...)
	}
}
