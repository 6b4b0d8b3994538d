package watch

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// TestNoise: only the directories with half of the events are unwatched for a while, after it lasted long
// enough.
func TestNoise(t *testing.T) {
	t.Parallel()
	now := time.Now()
	noisy, other, quiet := &dir{id: identity{1, 1}}, &dir{id: identity{1, 2}}, &dir{id: identity{1, 3}}
	full := func(n *noise) { n.counts[noisy], n.counts[other], n.counts[quiet] = 60, 40, 50 }
	n := newNoise()
	overflows := func(at time.Duration, want ...*dir) {
		t.Helper()
		full(&n)
		if got := n.overflowed(now.Add(at)); !slices.Equal(got, want) {
			t.Errorf("after %s %d are noisy, not %d", at, len(got), len(want))
		}
	}
	overflows(0)
	overflows(overflowFor)
	overflows(overflowFor+overflowWithin+time.Second, nil...) // old events do not count
	overflows(overflowFor + overflowWithin + 2*time.Second)
	at := 2*overflowFor + overflowWithin + 2*time.Second
	overflows(at, noisy, quiet)
	for _, c := range []struct {
		d    *dir
		at   time.Duration
		want error
	}{{noisy, at, ErrLimit}, {other, at, nil}, {noisy, at + noisyFor - 1, ErrLimit}, {noisy, at + noisyFor, nil}} {
		if err := n.check(c.d.id, now.Add(c.at)); !errors.Is(err, c.want) {
			t.Errorf("%v after %s: %v, not %v", c.d.id, c.at, err, c.want)
		}
	}
	if n.overflowed(now.Add(at + 2*noisyFor)); len(n.known) > 0 {
		t.Errorf("%d directories are remembered that are not noisy any more", len(n.known))
	}
	n.counts[noisy] = 1
	n.emptied()
	if got := n.overflowed(now); got != nil {
		t.Errorf("%d are noisy, and no event came", len(got))
	}
}
