package watch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/model"
)

// retryAfter is the delay before the next attempt to watch a failed point. Limits apply to all processes
// together.
const retryAfter = time.Minute

// settle resolves and scans marked routes and trees again. It returns the wake functions to call and the
// latest time of the next call, zero for never.
func (f *files) settle(now time.Time) (wakes []func(), again time.Time) {
	if len(f.failed) > 0 && !now.Before(f.retry) {
		for x := range f.failed {
			f.marks.markStale(x)
			if x.folder.err != nil {
				f.marks.markDirty(x.folder)
			}
		}
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
		x.woken = false
		if x.wake != nil && (x.point.After == "" || x.failed.get() != nil) {
			wakes = append(wakes, x.wake)
		}
	}
	f.marks.woken = nil
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

type marks struct {
	// dirty and stale are the folders and watches to resolve again, possibly later. woken are the watches of
	// one read to wake. The flags of these names mark the members.
	dirty []*folder
	stale []*pathWatch
	woken []*pathWatch
	// trees are the trees to scan again, possibly later.
	trees map[*tree]struct{}
}

func (m *marks) markDirty(at *folder) {
	if !at.dirty {
		at.dirty = true
		m.dirty = append(m.dirty, at)
	}
}

// markStale marks a watch: its route is resolved again, and its tree is scanned.
func (m *marks) markStale(x *pathWatch) {
	if !x.stale {
		x.stale = true
		m.stale = append(m.stale, x)
	}
	if x.tree != nil {
		m.trees[x.tree] = struct{}{}
	}
}

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

// freeTime is the time that work may take without waiting.
const freeTime = 20 * time.Millisecond

// quotaDivisor limits work to one part in quotaDivisor of the time.
const quotaDivisor = 20

// timeQuota limits the time that other users can cost the agent: it sums up the recent time of one
// kind of work. The zero value is ready to use. It is not safe for concurrent use.
type timeQuota struct {
	time time.Duration
	// at is the time of the last Add.
	at time.Time
}

// left returns the part of the sum that still counts at a time.
func (s *timeQuota) left(now time.Time) time.Duration {
	return max(0, s.time-max(0, now.Sub(s.at))/quotaDivisor)
}

// Add adds the duration of work that ended now.
func (s *timeQuota) Add(took time.Duration, now time.Time) {
	s.time, s.at = s.left(now)+took, now
}

// Due returns when work that was last done at last may be done again. The more time all work has
// taken, the later it is due.
func (s *timeQuota) Due(last, now time.Time) time.Time {
	left := s.left(now)
	if left <= freeTime {
		return now
	}

	return last.Add(quotaDivisor * left)
}

// The owner of a directory can cause more events than the kernel queues, at any rate. After each overflow all
// watches must be checked. Therefore the watcher does not watch the directories with the most events for
// noisyFor after they caused overflows for longer than overflowFor, with at most overflowWithin between two
// overflows. A single burst has no effect.
const (
	overflowFor    = 2 * time.Second
	overflowWithin = time.Minute
	noisyFor       = 5 * time.Minute
)

// identity identifies a directory independent of its path.
type identity struct{ dev, ino uint64 }

// noise counts the events of directories, to find the directories that overflow the queue.
type noise struct {
	// counts are the events since the queue was last empty.
	counts map[*dir]int
	// known are the directories that had most of the events at an overflow.
	known map[identity]overflows
}

// overflows are the overflows of the queue that a directory contributed to.
type overflows struct {
	// first and last are the times of a series of overflows.
	first, last time.Time
	// noisyUntil is the time when the directory is watched again.
	noisyUntil time.Time
}

func newNoise() noise { return noise{counts: map[*dir]int{}, known: map[identity]overflows{}} }

// overflowed records an overflow and returns the directories that are noisy from now on.
func (n *noise) overflowed(now time.Time) (noisy []*dir) {
	maps.DeleteFunc(n.known, func(_ identity, o overflows) bool {
		return now.Sub(o.last) > overflowWithin && !now.Before(o.noisyUntil)
	})
	for _, d := range n.noisiest() {
		o := n.known[d.id]
		if now.Sub(o.last) > overflowWithin {
			o.first = now
		}
		if o.last = now; now.Sub(o.first) > overflowFor {
			o = overflows{noisyUntil: now.Add(noisyFor)}
			noisy = append(noisy, d)
		}
		n.known[d.id] = o
	}
	n.emptied()

	return noisy
}

// noisiest returns the directories with the most events, together at least half of all events.
func (n *noise) noisiest() (out []*dir) {
	total, most := 0, make([]*dir, 0, len(n.counts))
	for d, count := range n.counts {
		total += count
		most = append(most, d)
	}
	slices.SortFunc(most, func(a, b *dir) int { return cmp.Compare(n.counts[b], n.counts[a]) })
	for sum := 0; 2*sum < total; out = append(out, most[len(out)]) {
		sum += n.counts[most[len(out)]]
	}

	return out
}

func (n *noise) emptied() { clear(n.counts) }

func (n *noise) check(id identity, now time.Time) error {
	if !now.Before(n.known[id].noisyUntil) {
		return nil
	}

	return fmt.Errorf("%w: a directory on the path has more events than the kernel queues (fs.inotify.max_queued_events); muster watches it again after %s", ErrLimit, noisyFor)
}

func identify(fd int) (identity, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)

	return identity{st.Dev, st.Ino}, err
}
