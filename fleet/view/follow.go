package view

// followed is how many events wait for a reader: one for which more would is too slow.
const followed = 512

// follower is a reader of events.
type follower struct {
	matcher
	events chan Event
}

// Follow returns a channel with the events of a higher sequence than q.After, or for 0 those that
// arrive from now on, in their order, until cancel. It is closed when the reader is too slow, or
// when more are there already than wait for one: it then asks for a page again.
func (f *Fleet) Follow(q EventQuery) (events <-chan Event, cancel func()) {
	w := &follower{newMatcher(q), make(chan Event, followed)}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followers[w] = true
	if q.After > 0 {
		f.events.after(q.After, func(it *item[happened]) bool {
			f.send(w, it)
			return f.followers[w]
		})
	}

	return w.events, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.end(w)
	}
}

// publish hands an event to those who follow it.
func (f *Fleet) publish(it *item[happened]) {
	for w := range f.followers {
		f.send(w, it)
	}
}

// send hands an event to a reader, unless that is too slow.
func (f *Fleet) send(w *follower, it *item[happened]) {
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
func (f *Fleet) end(w *follower) {
	if f.followers[w] {
		delete(f.followers, w)
		close(w.events)
	}
}
