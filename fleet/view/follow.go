package view

// followed is the number of events that wait for a reader. A reader with more is too slow.
const followed = 512

// follower is a reader of events.
type follower struct {
	matcher
	events chan Event
}

// followers are the readers of events.
type followers struct {
	all map[*follower]bool
	// last is the newest place.
	last position
}

func newFollowers() followers { return followers{all: map[*follower]bool{}} }

// Follow returns a channel with the events after q.After, or for 0 the new events, in order, until cancel. It
// closes the channel if the reader is too slow or if too many events are already waiting. The reader then
// requests a page again.
func (l *activityLog) Follow(q EventQuery) (events <-chan Event, cancel func()) {
	w := &follower{newMatcher(q), make(chan Event, followed)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followers.all[w] = true
	if q.After > 0 {
		l.events.after(q.After, func(it *item[happened]) bool {
			l.followers.send(w, it)
			return l.followers.all[w]
		})
	}

	return w.events, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.followers.end(w)
	}
}

// publish sends an event to the followers, unless a newer event was published.
func (f *followers) publish(it *item[happened]) {
	if it.compare(f.last) <= 0 {
		return
	}
	f.last = it.position
	for w := range f.all {
		f.send(w, it)
	}
}

// send sends an event to a reader, unless the reader is too slow.
func (f *followers) send(w *follower, it *item[happened]) {
	if !w.matches(it.siblings.node, &it.value) {
		return
	}
	select {
	case w.events <- eventOf(it):
	default:
		f.end(w)
	}
}

// end closes the channel of a reader, once.
func (f *followers) end(w *follower) {
	if f.all[w] {
		delete(f.all, w)
		close(w.events)
	}
}
