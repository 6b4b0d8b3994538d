package watch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

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

// emptied records that all events were read.
func (n *noise) emptied() { clear(n.counts) }

// check returns an error for a noisy directory.
func (n *noise) check(id identity, now time.Time) error {
	if !now.Before(n.known[id].noisyUntil) {
		return nil
	}

	return fmt.Errorf("%w: a directory on the path has more events than the kernel queues (fs.inotify.max_queued_events); muster watches it again after %s", ErrLimit, noisyFor)
}

// identify returns the identity of an open directory.
func identify(fd int) (identity, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)

	return identity{st.Dev, st.Ino}, err
}
