package watch

import (
	"testing"
	"time"
)

func TestResubscriptionComesLaterEachTime(t *testing.T) {
	t.Parallel()
	o := Options{Audit: 5 * time.Minute, Retry: time.Second, Rand: func() float64 { return 1 }}
	var r resubscription
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		if isPlanned, isFirst := r.plan(now, o); !isPlanned || isFirst != (i == 0) {
			t.Errorf("%d: it is planned: %v, and the first: %v", i, isPlanned, isFirst)
		}
		if again, _ := r.plan(now.Add(time.Millisecond), o); again || r.at.Sub(now) != want*time.Second {
			t.Errorf("%d: planned in %s, want %s", i, r.at.Sub(now), want*time.Second)
		}
		if r.isDue(now) || !r.isDue(r.at) {
			t.Errorf("%d: due at another time than %s", i, r.at)
		}
		now = r.at
		r.at, r.last = time.Time{}, now
	}
	now = now.Add(o.Audit + time.Second)
	if _, isFirst := r.plan(now, o); !isFirst || r.at.Sub(now) != time.Second {
		t.Errorf("a while after the last one: in %s", r.at.Sub(now))
	}
	r = resubscription{}
	o.Rand = func() float64 { return 0 }
	if r.plan(now, o); r.at.Sub(now) != time.Second/2 {
		t.Errorf("the least jitter: in %s", r.at.Sub(now))
	}
}

// TestPermittedAgainIsCheckedOnce checks soon after a connection without denials.
func TestPermittedAgainIsCheckedOnce(t *testing.T) {
	t.Parallel()
	o := Options{Audit: 5 * time.Minute, Retry: time.Second, Rand: func() float64 { return 1 }}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var r resubscription
	if r.reconnected(now, o); r.checks(now.Add(time.Hour)) {
		t.Error("checked where nothing was denied")
	}
	r.plan(now, o)
	r.at = time.Time{}
	r.reconnected(now.Add(time.Minute), o)
	if r.checks(now.Add(time.Minute)) {
		t.Error("checked at once")
	}
	r.plan(now.Add(time.Minute), o)
	if r.checks(now.Add(time.Hour)) {
		t.Error("checked where it was denied again")
	}
	r.at = time.Time{}
	r.reconnected(now.Add(2*time.Minute), o)
	due := now.Add(2*time.Minute + o.Retry)
	if !r.checks(due) || r.checks(due) || !r.since.Equal(now) {
		t.Errorf("not checked once, or since %s", r.since)
	}
}
