package watch

import "golang.org/x/sys/unix"

// marks are the results of events.
type marks struct {
	// dirty and stale are the folders and watches to resolve again, possibly later. woken are the watches of
	// one read to wake. The flags of these names mark the members.
	dirty []*folder
	stale []*pathWatch
	woken []*pathWatch
	// trees are the trees to scan again, possibly later.
	trees map[*tree]struct{}
}

// markDirty marks a folder whose route must be resolved again.
func (m *marks) markDirty(at *folder) {
	if !at.dirty {
		at.dirty = true
		m.dirty = append(m.dirty, at)
	}
}

// markStale marks a watch whose route must be resolved again and whose tree must be scanned.
func (m *marks) markStale(x *pathWatch) {
	if !x.stale {
		x.stale = true
		m.stale = append(m.stale, x)
	}
	if x.tree != nil {
		m.trees[x.tree] = struct{}{}
	}
}

// markWoken marks a watch that must be woken.
func (m *marks) markWoken(x *pathWatch) {
	if !x.woken {
		x.woken = true
		m.woken = append(m.woken, x)
	}
}

// markTree marks a tree that must be scanned again, and wakes its watch.
func (m *marks) markTree(t *tree) {
	m.markWoken(t.watch)
	m.trees[t] = struct{}{}
}

// markOwner marks the folder or watch of the route that has an event.
func (m *marks) markOwner(r *route, e event) {
	if r.folder != nil {
		m.markDirty(r.folder)
		return
	}
	m.markWoken(r.watch)
	if e.has(unix.IN_MODIFY | unix.IN_CLOSE_WRITE) {
		r.watch.written.Store(true)
	}
	// An attribute of a directory on the route of a link decides whether the link can be followed.
	if e.has(entries) || len(r.hops) > 1 {
		m.markStale(r.watch)
	}
}

// resetWoken clears the watches that one read woke.
func (m *marks) resetWoken() {
	for _, x := range m.woken {
		x.woken = false
	}
	m.woken = nil
}
