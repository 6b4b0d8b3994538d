package view

// followed is how many events wait for a reader: one for which more would is too slow.
const followed = 512

// follower is a reader of events.
type follower struct {
	matcher
	events chan Event
}

// followers are the readers of events.
type followers struct {
	all map[*follower]bool
	// last is the newest place of an event.
	last position
}

func newFollowers() followers { return followers{all: map[*follower]bool{}} }

// Follow returns a channel with the events of a higher sequence than q.After, or for 0 those that
// arrive from now on, in their order, until cancel. It is closed when the reader is too slow, or
// when more are there already than wait for one: it then asks for a page again.
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

// publish hands an event to those who follow, unless there was a newer one.
func (f *followers) publish(it *item[happened]) {
	if it.compare(f.last) <= 0 {
		return
	}
	f.last = it.position
	for w := range f.all {
		f.send(w, it)
	}
}

// send hands an event to a reader, unless that is too slow.
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
