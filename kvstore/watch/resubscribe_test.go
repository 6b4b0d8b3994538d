package watch

import (
	"testing"
	"time"
)

func TestResubscriptionComesLaterEachTime(t *testing.T) {
	t.Parallel()
	o := Options{Audit: 5 * time.Minute, Retry: time.Second, Rand: func() float64 { return 1 }}
	r := resubscription{o: o}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		if isPlanned, isFirst := r.plan(now); !isPlanned || isFirst != (i == 0) {
			t.Errorf("%d: it is planned: %v, and the first: %v", i, isPlanned, isFirst)
		}
		if again, _ := r.plan(now.Add(time.Millisecond)); again || r.at.Sub(now) != want*time.Second {
			t.Errorf("%d: planned in %s, want %s", i, r.at.Sub(now), want*time.Second)
		}
		if r.isDue(now) || !r.isDue(r.at) {
			t.Errorf("%d: due at another time than %s", i, r.at)
		}
		now = r.at
		r.at, r.last = time.Time{}, now
	}
	now = now.Add(o.Audit + time.Second)
	if _, isFirst := r.plan(now); !isFirst || r.at.Sub(now) != time.Second {
		t.Errorf("a while after the last one: in %s", r.at.Sub(now))
	}
	o.Rand = func() float64 { return 0 }
	r = resubscription{o: o}
	if r.plan(now); r.at.Sub(now) != time.Second/2 {
		t.Errorf("the least jitter: in %s", r.at.Sub(now))
	}
}

// TestPermittedAgainIsCheckedOnce checks soon after a connection without denials.
func TestPermittedAgainIsCheckedOnce(t *testing.T) {
	t.Parallel()
	o := Options{Audit: 5 * time.Minute, Retry: time.Second, Rand: func() float64 { return 1 }}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := resubscription{o: o}
	if r.reconnected(now); r.checks(now.Add(time.Hour)) {
		t.Error("checked where nothing was denied")
	}
	r.plan(now)
	r.at = time.Time{}
	r.reconnected(now.Add(time.Minute))
	if r.checks(now.Add(time.Minute)) {
		t.Error("checked at once")
	}
	r.plan(now.Add(time.Minute))
	if r.checks(now.Add(time.Hour)) {
		t.Error("checked where it was denied again")
	}
	r.at = time.Time{}
	r.reconnected(now.Add(2 * time.Minute))
	due := now.Add(2*time.Minute + o.Retry)
	if !r.checks(due) || r.checks(due) || !r.since.Equal(now) {
		t.Errorf("not checked once, or since %s", r.since)
	}
}
