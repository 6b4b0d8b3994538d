package view

import (
	"strings"

	"github.com/musterfleet/muster/model"
)

// matcher is a query of events, prepared for many of them.
type matcher struct{ EventQuery }

func newMatcher(q EventQuery) matcher {
	q.Search = strings.ToLower(q.Search)

	return matcher{q}
}

// matches reports whether the query selects an event of a node, whatever its place.
func (m *matcher) matches(node string, h *happened) bool {
	switch {
	case m.Node != "" && m.Node != node, m.Kind != "" && m.Kind != h.kind, m.RunID != "" && m.RunID != h.runID,
		m.Outcome != "" && m.Outcome != h.outcome, m.Cause != "" && m.Cause != h.cause:
		return false
	case m.Manifest != "" && m.Manifest != h.manifest && !model.IsKeyOf(h.manifest, m.Manifest):
		return false
	case !m.Since.IsZero() && h.at.Time().Before(m.Since), !m.Until.IsZero() && !h.at.Time().Before(m.Until):
		return false
	case m.Search == "":
		return true
	}
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), m.Search) }

	return m.Search == strings.ToLower(h.correlation) || has(h.text) || has(h.resource) || has(h.manifest) || has(node)
}

// limit returns how many are returned.
func (m *matcher) limit() int {
	if m.Limit <= 0 {
		return defaultLimit
	}

	return min(m.Limit, maxLimit)
}

// defaultLimit and maxLimit are how many rows a list has.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// Page returns events, the newest first, and whether there are older ones which are kept.
func (l *activityLog) Page(q EventQuery) (events []Event, more bool) {
	m := newMatcher(q)
	limit := m.limit()
	l.mu.RLock()
	defer l.mu.RUnlock()
	events = []Event{}
	l.events.newest(q.Before, func(it *item[happened]) bool {
		if !m.matches(it.siblings.node, &it.value) {
			return true
		}
		// Those of one batch stay on one page, which goes on before their sequence.
		if n := len(events); n >= limit && events[n-1].Seq != it.seq {
			more = true
			return false
		}
		events = append(events, eventOf(it))
		return true
	})

	return events, more
}

// Runs returns runs, the newest first.
func (l *activityLog) Runs(q EventQuery) []RunRow {
	m := newMatcher(q)
	m.Kind = "" // they are runs
	limit := m.limit()
	l.mu.RLock()
	defer l.mu.RUnlock()
	out := []RunRow{}
	l.runs.newest(q.Before, func(it *item[runRow]) bool {
		r := &it.value
		if m.matches(it.siblings.node, &happened{runID: r.id, text: r.error, at: r.started, sameEvent: &sameEvent{manifest: r.manifest, outcome: r.outcome, cause: r.cause}}) {
			out = append(out, rowOf(it))
		}
		return len(out) < limit
	})

	return out
}
