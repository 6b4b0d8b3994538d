package view

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// maxGaps limits the stored gaps; older gaps are dropped.
const maxGaps = 32

// gap is a period without data about nodes. to is zero during the gap.
type gap struct{ from, to time.Time }

// gaps are the periods without data, oldest first. They do not count towards the silence of a node.
type gaps []gap

// begin begins a gap, unless one lasts.
func (g gaps) begin(at time.Time) gaps {
	if g.since().IsZero() {
		g = append(g, gap{from: at})
	}

	return g[max(len(g)-maxGaps, 0):]
}

// end ends the current gap, if any.
func (g gaps) end(at time.Time) {
	if !g.since().IsZero() {
		g[len(g)-1].to = at
	}
}

// since returns the beginning of the current gap, zero if there is none.
func (g gaps) since() time.Time {
	if len(g) == 0 || !g[len(g)-1].to.IsZero() {
		return time.Time{}
	}

	return g[len(g)-1].from
}

// isSilent reports whether a node was silent for too long. Gaps after its last update do not count.
func (g gaps) isSilent(n model.Node, now time.Time) bool {
	for _, one := range g {
		to := one.to
		if to.IsZero() {
			to = now
		}
		if n.Heard.Before(one.from) && to.After(one.from) {
			now = now.Add(-to.Sub(one.from))
		}
	}

	return n.IsSilent(now)
}

// Blind records a reason why no data about nodes has arrived since a time. No node becomes unreachable until
// Sees has removed every reason.
func (a *inventory) Blind(reason string, since time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.blind[reason] {
		return
	}
	a.blind[reason] = true
	a.gaps = a.gaps.begin(since)
	a.options.Changed()
}

// Sees removes a reason that Blind recorded.
func (a *inventory) Sees(reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.blind[reason] {
		return
	}
	delete(a.blind, reason)
	if len(a.blind) == 0 {
		a.gaps.end(time.Now())
	}
	a.options.Changed()
}

// BlindSince returns the time since which no data about nodes arrives, zero if data arrives.
func (a *inventory) BlindSince() time.Time {
	a.mu.RLock()
	defer a.mu.RUnlock()

	return a.gaps.since()
}
