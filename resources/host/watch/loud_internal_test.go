package watch

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// TestLoud: the directories with half of the events are not watched for a while once that went on
// for long enough, and no others.
func TestLoud(t *testing.T) {
	t.Parallel()
	now := time.Now()
	loud, other, quiet := &dir{id: identity{1, 1}}, &dir{id: identity{1, 2}}, &dir{id: identity{1, 3}}
	full := func(n *noise) { n.counts[loud], n.counts[other], n.counts[quiet] = 60, 40, 50 }
	n := newNoise()
	lost := func(at time.Duration, want ...*dir) {
		t.Helper()
		full(&n)
		if got := n.lost(now.Add(at)); !slices.Equal(got, want) {
			t.Errorf("after %s %d are loud, not %d", at, len(got), len(want))
		}
	}
	lost(0)
	lost(lossFor)
	lost(lossFor+lossWithin+time.Second, nil...) // what is long ago does not count
	lost(lossFor + lossWithin + 2*time.Second)
	at := 2*lossFor + lossWithin + 2*time.Second
	lost(at, loud, quiet)
	for _, c := range []struct {
		d    *dir
		at   time.Duration
		want error
	}{{loud, at, ErrLimit}, {other, at, nil}, {loud, at + loudFor - 1, ErrLimit}, {loud, at + loudFor, nil}, {loud, at, nil}} {
		if err := n.check(c.d.id, now.Add(c.at)); !errors.Is(err, c.want) {
			t.Errorf("%v after %s: %v, not %v", c.d.id, c.at, err, c.want)
		}
	}
	if n.lost(now.Add(at + 2*loudFor)); len(n.loud) > 0 {
		t.Errorf("%d directories are remembered that are not loud any more", len(n.loud))
	}
	n.counts[loud] = 1
	n.empty()
	if got := n.lost(now); got != nil {
		t.Errorf("%d are loud, and no event came", len(got))
	}
}
