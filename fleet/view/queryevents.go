package view

import "strings"

// matcher is a query of events, prepared for many of them.
type matcher struct{ EventQuery }

func newMatcher(q EventQuery) matcher {
	q.Search = strings.ToLower(q.Search)

	return matcher{q}
}

// matches reports whether the query selects an event, whatever its place.
func (m matcher) matches(e *Event) bool {
	switch {
	case m.Node != "" && m.Node != e.Node, m.Kind != "" && m.Kind != e.Kind, m.RunID != "" && m.RunID != e.RunID,
		m.Outcome != "" && m.Outcome != e.Outcome, m.Cause != "" && m.Cause != e.Cause:
		return false
	case m.Manifest != "" && m.Manifest != e.Manifest && !isOf(e.Manifest, m.Manifest):
		return false
	case m.Search == "":
		return true
	}
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), m.Search) }

	return m.Search == strings.ToLower(e.CorrelationID) || has(e.Text) || has(e.Resource) || has(e.Manifest) || has(e.Node)
}

// limit returns how many are returned.
func (m matcher) limit() int {
	if m.Limit <= 0 {
		return defaultLimit
	}

	return min(m.Limit, maxLimit)
}

// Events returns a page of events, the newest first.
func (f *Fleet) Events(q EventQuery) EventPage {
	m := newMatcher(q)
	limit := m.limit()
	f.mu.RLock()
	defer f.mu.RUnlock()
	out := EventPage{Progress: f.progress.get(), Events: []Event{}}
	f.events.newest(q.Before, func(it *item[Event]) bool {
		if !m.matches(&it.value) {
			return true
		}
		// Those of one batch stay on one page, which goes on before their sequence.
		if n := len(out.Events); n >= limit && out.Events[n-1].Seq != it.seq {
			out.More = true
			return false
		}
		out.Events = append(out.Events, it.value)
		return true
	})

	return out
}

// Runs returns runs, the newest first.
func (f *Fleet) Runs(q EventQuery) []RunRow {
	m := newMatcher(q)
	m.Kind = "" // they are runs
	limit := m.limit()
	f.mu.RLock()
	defer f.mu.RUnlock()
	out := []RunRow{}
	f.runs.newest(q.Before, func(it *item[*RunRow]) bool {
		r := it.value
		if m.matches(&Event{Node: r.Node, RunID: r.RunID, Manifest: r.Manifest, Outcome: r.Outcome, Cause: r.Cause, Text: r.Error}) {
			out = append(out, *r)
		}
		return len(out) < limit
	})

	return out
}
