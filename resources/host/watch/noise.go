package watch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Whoever owns a directory can have more events come from it than the kernel queues, all the
// time, and each time all that is watched has to be looked at. So the directories that most
// events come from are not watched for noisyFor once that went on for longer than overflowFor, with
// no more than overflowWithin between two times: what somebody changes there once does not.
const (
	overflowFor    = 2 * time.Second
	overflowWithin = time.Minute
	noisyFor       = 5 * time.Minute
)

// identity is the very directory, whatever its path.
type identity struct{ dev, ino uint64 }

// noise is which directories have more events than the kernel queues.
type noise struct {
	// counts are the events that were read since the queue was last empty.
	counts map[*dir]int
	// known are the directories that had most of the events when the queue overflowed.
	known map[identity]overflows
}

// overflows are those of the queue that a directory had a part in.
type overflows struct {
	// first and last are of those that belong together.
	first, last time.Time
	// noisyUntil is when the directory is watched again.
	noisyUntil time.Time
}

func newNoise() noise { return noise{counts: map[*dir]int{}, known: map[identity]overflows{}} }

// overflowed notes that the queue did, and returns the directories that are noisy from now on.
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

// noisiest returns the directories with the most events, which have half of all of them.
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

// emptied notes that all events were read.
func (n *noise) emptied() { clear(n.counts) }

// check returns an error for a directory that is noisy.
func (n *noise) check(id identity, now time.Time) error {
	if !now.Before(n.known[id].noisyUntil) {
		return nil
	}

	return fmt.Errorf("%w: a directory on its way has more events than the kernel queues (fs.inotify.max_queued_events): it is watched again after %s", ErrLimit, noisyFor)
}

// identify returns which directory a descriptor has open.
func identify(fd int) (identity, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)

	return identity{st.Dev, st.Ino}, err
}
