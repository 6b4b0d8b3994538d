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
// events come from are not watched for loudFor once that went on for longer than lossFor, with no
// more than lossWithin between two times: what somebody changes there once does not.
const (
	lossFor    = 2 * time.Second
	lossWithin = time.Minute
	loudFor    = 5 * time.Minute
)

// identity is the very directory, whatever its path.
type identity struct{ dev, ino uint64 }

// noise is where the events come from that were read since the queue was empty last, and what
// came of it.
type noise struct {
	counts map[*dir]int
	// losses are when events were lost, by the directories that they came from.
	losses map[identity]losses
	// loud are the directories that are not watched, and until when.
	loud map[identity]time.Time
}

// losses is when events were lost first and last, of those that belong together.
type losses struct{ first, last time.Time }

func newNoise() noise {
	return noise{counts: map[*dir]int{}, losses: map[identity]losses{}, loud: map[identity]time.Time{}}
}

// lost notes that events were lost, and returns the directories that are loud from now on.
func (n *noise) lost(now time.Time) (loud []*dir) {
	for id, before := range n.losses {
		if now.Sub(before.last) > lossWithin {
			delete(n.losses, id)
		}
	}
	maps.DeleteFunc(n.loud, func(_ identity, until time.Time) bool { return !now.Before(until) })
	for _, d := range n.loudest() {
		l, known := n.losses[d.id]
		if !known {
			l.first = now
		}
		l.last = now
		if n.losses[d.id] = l; now.Sub(l.first) > lossFor {
			delete(n.losses, d.id)
			n.loud[d.id] = now.Add(loudFor)
			loud = append(loud, d)
		}
	}
	n.empty()

	return loud
}

// loudest returns the directories with the most events, which have half of all of them.
func (n *noise) loudest() (out []*dir) {
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

// empty notes that all events were read.
func (n *noise) empty() { clear(n.counts) }

// check returns an error for a directory that is loud.
func (n *noise) check(id identity, now time.Time) error {
	until, is := n.loud[id]
	if !is {
		return nil
	}
	if !now.Before(until) {
		delete(n.loud, id)
		return nil
	}

	return fmt.Errorf("%w: a directory on its way has more events than the kernel queues (fs.inotify.max_queued_events): it is watched again after %s", ErrLimit, loudFor)
}

// identify returns which directory a descriptor has open.
func identify(fd int) (identity, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)

	return identity{st.Dev, st.Ino}, err
}
