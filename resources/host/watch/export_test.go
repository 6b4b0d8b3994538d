package watch

import (
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/resources/host/units"
)

// NewAt returns a watcher that looks for the socket of systemd below another root.
func NewAt(root string) *Watcher {
	w := New(nil)
	w.units = units.NewWatcher(slog.New(slog.DiscardHandler), root)

	return w
}

// Unsettled reports whether a tree has yet to be gone through.
func Unsettled(w *Watcher) bool {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()

	return len(w.files.marks.trees) > 0
}

// RetryNow has the next event try again what failed.
func RetryNow(w *Watcher) {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	w.files.retry = time.Time{}
}

// Hold delays all events but those of one read until the returned function is called.
func Hold(w *Watcher) (release func()) {
	w.files.mu.Lock()

	return w.files.mu.Unlock
}

// Stats are figures of a watcher.
type Stats struct {
	// Points are the armed points of paths and trees.
	Points int
	// Directories are the watches of the kernel, one a directory, all of one
	// descriptor.
	Directories int
	// Fallbacks are the points that are not watched at the moment, by name.
	Fallbacks []Fallback
}

// Fallback is a point that is not watched now, and the error of Watch.Err.
type Fallback struct {
	Point Point
	Err   error
}

// Stats returns figures of the current watches.
func (w *Watcher) Stats() (out Stats) {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	for x := range w.files.watches {
		if !x.isLock {
			out.Points++
		}
	}
	if !w.files.closed {
		out.Directories = len(w.files.inotify.dirs)
	}
	for x := range w.files.failed {
		out.Fallbacks = append(out.Fallbacks, Fallback{x.point, x.failed.get()})
	}
	slices.SortFunc(out.Fallbacks, func(a, b Fallback) int { return strings.Compare(a.Point.String(), b.Point.String()) })

	return out
}

// Hops counts the names looked up for the watches.
func Hops(w *Watcher) (count int) {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	for _, d := range w.files.inotify.dirs {
		for _, passes := range d.hops {
			count += len(passes)
		}
	}

	return count
}

// Exhaust has routes taken so much time that those resolved lately have to wait.
func Exhaust(w *Watcher) {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	w.files.walks.Add(2*freeTime, time.Now())
	for _, at := range w.files.folders.byPath {
		at.route.walked = time.Now()
	}
	for x := range w.files.watches {
		if !x.route.walked.IsZero() {
			x.route.walked = time.Now()
		}
	}
}

// Deferred counts the routes that wait to be resolved again.
func Deferred(w *Watcher) int {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()

	return len(w.files.marks.dirty) + len(w.files.marks.stale)
}

// AgeLocks has the locks that are waited for held for too long.
func AgeLocks(w *Watcher) {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	for _, l := range w.files.locks {
		l.since = l.since.Add(-maxHeld)
	}
}

// ExhaustScans has trees scanned for so long that none may be again, until end is called.
func ExhaustScans(w *Watcher) (end func()) {
	set := func(e timeQuota) {
		w.files.mu.Lock()
		defer w.files.mu.Unlock()
		w.files.scans = e
	}
	var much timeQuota
	much.Add(time.Hour, time.Now())
	set(much)

	return func() { set(timeQuota{}) }
}

// AgeOverflows has the queue overflowed for the first time so long ago that it counts.
func AgeOverflows(w *Watcher) {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	n := &w.files.inotify.noise
	for id, o := range n.known {
		o.first = o.first.Add(-2 * overflowFor)
		n.known[id] = o
	}
	w.files.marked = time.Time{}
}

// EndNoise has the directories that are noisy watched again.
func EndNoise(w *Watcher) {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	clear(w.files.inotify.noise.known)
}

// LimitWatches has the kernel have no more than some watches. Something must be watched already.
func LimitWatches(w *Watcher, most int) {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	w.files.inotify.most = most
}
