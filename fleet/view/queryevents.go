package view

import (
	"strings"

	"github.com/musterfleet/muster/model"
)

// matcher is a compiled query of events.
type matcher struct{ EventQuery }

func newMatcher(q EventQuery) matcher {
	q.Search = strings.ToLower(q.Search)

	return matcher{q}
}

// matches reports whether the query selects an event of a node, at any place.
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

// limit returns the number of rows to return.
func (m *matcher) limit() int {
	if m.Limit <= 0 {
		return defaultLimit
	}

	return min(m.Limit, maxLimit)
}

// defaultLimit and maxLimit are limits of the rows of a list.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// Page returns events, newest first, and whether older ones are retained.
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
		// Events of one batch stay on one page. The next page continues before their sequence number.
		if n := len(events); n >= limit && events[n-1].Seq != it.seq {
			more = true
			return false
		}
		events = append(events, eventOf(it))
		return true
	})

	return events, more
}

// Runs returns runs, newest first.
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
