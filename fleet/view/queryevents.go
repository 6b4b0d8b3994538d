package view

import "strings"

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
	case m.Manifest != "" && m.Manifest != h.manifest && !isOf(h.manifest, m.Manifest):
		return false
	case m.Search == "":
		return true
	}
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), m.Search) }

	return has(h.text) || has(h.resource) || has(h.manifest) || has(node)
}

// limit returns how many are returned.
func (m *matcher) limit() int {
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
	f.events.newest(q.Before, func(it *item[happened]) bool {
		if !m.matches(it.siblings.node, &it.value) {
			return true
		}
		// Those of one batch stay on one page, which goes on before their sequence.
		if n := len(out.Events); n >= limit && out.Events[n-1].Seq != it.seq {
			out.More = true
			return false
		}
		out.Events = append(out.Events, eventOf(it))
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
	f.runs.newest(q.Before, func(it *item[runRow]) bool {
		r := &it.value
		if m.matches(it.siblings.node, &happened{runID: r.id, text: r.error, sameEvent: &sameEvent{manifest: r.manifest, outcome: r.outcome, cause: r.cause}}) {
			out = append(out, rowOf(it))
		}
		return len(out) < limit
	})

	return out
}
