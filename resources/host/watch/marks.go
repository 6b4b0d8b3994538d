package watch

import "golang.org/x/sys/unix"

// marks are what events came to.
type marks struct {
	// dirty and stale are those to be resolved again, some of them later, and woken is of
	// one reading, as the flags of the same names tell.
	dirty []*folder
	stale []*pathWatch
	woken []*pathWatch
	// trees are those to be scanned again, some of them later.
	trees map[*tree]struct{}
}

// markDirty has a folder resolved again.
func (m *marks) markDirty(at *folder) {
	if !at.dirty {
		at.dirty = true
		m.dirty = append(m.dirty, at)
	}
}

// markStale has the route of a watch resolved again, and its tree scanned.
func (m *marks) markStale(x *pathWatch) {
	if !x.stale {
		x.stale = true
		m.stale = append(m.stale, x)
	}
	if x.tree != nil {
		m.trees[x.tree] = struct{}{}
	}
}

// markWoken has a watch woken.
func (m *marks) markWoken(x *pathWatch) {
	if !x.woken {
		x.woken = true
		m.woken = append(m.woken, x)
	}
}

// markTree has a tree scanned again, and its watch woken.
func (m *marks) markTree(t *tree) {
	m.markWoken(t.watch)
	m.trees[t] = struct{}{}
}

// markOwner marks the folder or watch of a route at which an event happened.
func (m *marks) markOwner(r *route, e event) {
	if r.folder != nil {
		m.markDirty(r.folder)
		return
	}
	m.markWoken(r.watch)
	if e.has(unix.IN_MODIFY | unix.IN_CLOSE_WRITE) {
		r.watch.written.Store(true)
	}
	// An attribute on the way of a link decides whether it can be followed.
	if e.has(entries) || len(r.hops) > 1 {
		m.markStale(r.watch)
	}
}

// resetWoken forgets who was woken by one reading.
func (m *marks) resetWoken() {
	for _, x := range m.woken {
		x.woken = false
	}
	m.woken = nil
}
