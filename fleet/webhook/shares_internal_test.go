package webhook

import (
	"fmt"
	"testing"
	"time"
)

// TestShares: each node has a share, which refills over time up to its limit.
func TestShares(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	s := NewShares(2, time.Minute)
	for i, c := range []struct {
		node  string
		after time.Duration
		want  bool
	}{
		{"web01", 0, true},
		{"web01", 0, true},
		{"web01", 59 * time.Second, false},
		{"web02", 59 * time.Second, true},
		{"web01", 61 * time.Second, true},
		{"web01", 0, false},
		{"web01", 62 * time.Second, false},
		{"web01", time.Hour, true},
		{"web01", time.Hour, true},
		{"web01", time.Hour, false},
	} {
		if got := s.Take(c.node, at.Add(c.after)); got != c.want {
			t.Errorf("%d: %s after %s: %t", i, c.node, c.after, got)
		}
	}
}

// TestSharesForget nodes that have their whole share again, and no others.
func TestSharesForget(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	s := NewShares(1, time.Minute)
	for i := range 10 * minPruned {
		s.Take(fmt.Sprint("n", i), at.Add(time.Duration(i)*time.Second))
	}
	if len(s.nodes) > minPruned {
		t.Errorf("%d nodes are remembered", len(s.nodes))
	}
	if last := fmt.Sprint("n", 10*minPruned-1); s.Take(last, at.Add(10*minPruned*time.Second)) {
		t.Error("the last node has another one")
	}
}
