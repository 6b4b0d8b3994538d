package watch

import (
	"cmp"
	"time"

	"github.com/musterfleet/muster/model"
)

// retryAfter is the delay before the next attempt to watch a failed point. Limits apply to all processes
// together.
const retryAfter = time.Minute

// settle resolves and scans marked routes and trees again. It returns the wake functions to call and the
// latest time of the next call, zero for never.
func (f *files) settle(now time.Time) (wakes []func(), again time.Time) {
	if len(f.failed) > 0 && !now.Before(f.retry) {
		f.retryFailed()
		f.retry = now.Add(retryAfter)
	}
	if !f.overflow.IsZero() && !now.Before(f.overflow) {
		f.overflow, f.marked = time.Time{}, now
		f.markAll()
	}
	again = model.EarlierNonZero(f.overflow, f.settleRoutes(now))
	again = model.EarlierNonZero(again, f.settleTrees(now))
	unblocked, next := f.locks.settle(f.marks.woken, now)
	again = model.EarlierNonZero(again, next)
	for _, x := range f.marks.woken {
		if x.wake != nil && (x.point.After == "" || x.failed.get() != nil) {
			wakes = append(wakes, x.wake)
		}
	}
	f.marks.resetWoken()
	if len(f.failed) > 0 {
		again = model.EarlierNonZero(again, f.retry)
	}

	return append(wakes, unblocked...), again
}

// settleRoutes resolves the due routes again, for at most freeTime, because it holds the lock. A watch in a
// deferred folder is woken before and after the folder is resolved. A watch with a deferred route is woken
// after the route is resolved.
func (f *files) settleRoutes(now time.Time) (again time.Time) {
	waits := func(r *route) bool {
		if r.walked.IsZero() {
			return false
		}
		due := f.walks.Due(r.walked, now)
		if at := time.Now(); at.Sub(now) > freeTime {
			due = at.Add(time.Millisecond)
		}
		if !due.After(now) {
			return false
		}
		again = model.EarlierNonZero(again, due)
		return true
	}
	var dirty []*folder
	for _, at := range f.marks.dirty {
		switch {
		case !waits(&at.route):
			f.settleFolder(at)
			continue
		case !at.late:
			at.late = true
			for x := range at.watches {
				f.marks.markWoken(x)
			}
		}
		dirty = append(dirty, at)
	}
	var stale []*pathWatch
	for _, x := range f.marks.stale {
		if _, armed := f.watches[x]; !armed {
			continue
		}
		if waits(&x.route) {
			x.late = true
			stale = append(stale, x)
			continue
		}
		if x.late {
			x.late = false
			f.marks.markWoken(x)
		}
		began := time.Now()
		x.lost = f.folders.watchPath(x)
		if x.route.walked.After(began) {
			f.walks.Add(time.Since(began), time.Now())
		}
		f.setFailed(x)
	}
	f.marks.dirty, f.marks.stale = dirty, stale

	return again
}

// settleFolder resolves a folder again and marks all watches in it.
func (f *files) settleFolder(at *folder) {
	if f.folders.byPath[at.path] != at {
		return
	}
	failed, began := at.err != nil, time.Now()
	err := f.folders.resolve(at)
	f.walks.Add(time.Since(began), time.Now())
	if err != nil && failed {
		return
	}
	for x := range at.watches {
		f.marks.markWoken(x)
		f.marks.markStale(x)
	}
}

// settleTrees scans the changed trees that are due. It wakes the watches of newly watched directories.
func (f *files) settleTrees(now time.Time) (again time.Time) {
	for t := range f.marks.trees {
		if due := f.scans.Due(t.scanned, now); due.After(now) {
			again = model.EarlierNonZero(again, due)
			continue
		}
		delete(f.marks.trees, t)
		began := time.Now()
		t.err = t.scan(f.inotify)
		f.scans.Add(t.scanned.Sub(began), t.scanned)
		f.setFailed(t.watch)
		f.marks.markWoken(t.watch)
	}

	return again
}

// retryFailed tries to watch the failed points again.
func (f *files) retryFailed() {
	for x := range f.failed {
		f.marks.markStale(x)
		if x.folder.err != nil {
			f.marks.markDirty(x.folder)
		}
	}
}

// setFailed records whether a point is watched. It wakes the watch if that changed.
func (f *files) setFailed(x *pathWatch) {
	err := x.lost
	if x.tree != nil {
		err = cmp.Or(err, x.tree.err)
	}
	if (err != nil) != (x.failed.get() != nil) {
		f.marks.markWoken(x)
	}
	if x.failed.set(err); err == nil || x.isLock {
		delete(f.failed, x)
		return
	}
	if len(f.failed) == 0 {
		f.retry = time.Now().Add(retryAfter)
	}
	f.failed[x] = struct{}{}
}
