package watch

import (
	"testing"
	"time"
)

// TestShare has many routes that change constantly, each rarely. Together they use a twentieth of the time,
// and a new route is resolved at once.
func TestShare(t *testing.T) {
	t.Parallel()
	const routes, cost = 100, 5 * time.Millisecond
	var s timeQuota
	var spent time.Duration
	begin := time.Unix(1, 0)
	last := map[int]time.Time{}
	now := begin
	for now.Before(begin.Add(10 * time.Minute)) {
		for i := range routes {
			if at, known := last[i]; known && now.Before(s.Due(at, now)) {
				continue
			}
			now = now.Add(cost)
			spent += cost
			s.Add(cost, now)
			last[i] = now
		}
		now = now.Add(20 * cost)
	}
	if part := now.Sub(begin) / spent; part < quotaDivisor/2 || part > 2*quotaDivisor {
		t.Errorf("%v of %v", spent, now.Sub(begin))
	}
	if s.Due(time.Time{}, now).After(now) {
		t.Error("a route that was never resolved waits")
	}
	for i, at := range last {
		if now.Sub(at) > time.Minute {
			t.Errorf("route %d was forgotten for %v", i, now.Sub(at))
		}
	}
	if later := now.Add(time.Hour); s.Due(later, later).After(later) {
		t.Error("what was spent an hour ago counts")
	}
}
