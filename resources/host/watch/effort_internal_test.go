package watch

import (
	"testing"
	"time"
)

// TestEffort has many routes that change all the time, none of them often: all together take
// a twentieth of the time, and one that is resolved for the first time does not wait.
func TestEffort(t *testing.T) {
	t.Parallel()
	const routes, cost = 100, 5 * time.Millisecond
	var e effort
	var spent time.Duration
	begin := time.Unix(1, 0)
	last := map[int]time.Time{}
	now := begin
	for now.Before(begin.Add(10 * time.Minute)) {
		for i := range routes {
			if at, known := last[i]; known && now.Before(e.due(at, now)) {
				continue
			}
			now = now.Add(cost)
			spent += cost
			e.add(cost, now)
			last[i] = now
		}
		now = now.Add(20 * cost)
	}
	if share := now.Sub(begin) / spent; share < effortShare/2 || share > 2*effortShare {
		t.Errorf("%v of %v", spent, now.Sub(begin))
	}
	if e.due(time.Time{}, now).After(now) {
		t.Error("a route that was never resolved waits")
	}
	for i, at := range last {
		if now.Sub(at) > time.Minute {
			t.Errorf("route %d was forgotten for %v", i, now.Sub(at))
		}
	}
	if later := now.Add(time.Hour); e.due(later, later).After(later) {
		t.Error("what was spent an hour ago counts")
	}
}
