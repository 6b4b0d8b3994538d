package view

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// StreamMessage is a stored message of the stream of reports: one report or a batch.
type StreamMessage struct {
	// Seq is its sequence number. Stored is the time when the server stored it. This time orders events,
	// because clocks of nodes may be wrong.
	Seq     uint64
	Stored  time.Time
	Reports []model.Report
	// Invalid is the reason why a part of it cannot be read, nil if all is readable.
	Invalid error
}

// Add adds a message of the stream. A repeated message changes nothing. The order does not matter.
func (l *activityLog) Add(m StreamMessage) {
	all := make([]excerpt, 0, 1) // most messages are one report
	for _, r := range m.Reports {
		all = append(all, excerptOf(r, m.Seq, m.Stored))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.message(&m)
	if m.Invalid != nil {
		l.invalid.Count++
		l.invalid.Last = firstLine(m.Invalid.Error(), maxText)
		l.options.Changed()
	}
	for i := range all {
		l.add(&all[i], position{m.Seq, i})
	}
}

// AddRuns adds runs before the reports between them and the known reports. They appear in lists, but are
// counted only when Add adds them again.
func (l *activityLog) AddRuns(m StreamMessage) {
	for i, r := range m.Reports {
		t := excerptOf(r, m.Seq, m.Stored)
		if t.run == nil {
			continue
		}
		l.mu.Lock()
		h := l.words.keep(&t.Event)
		l.addRun(&t, &h, position{m.Seq, i})
		l.options.Changed()
		l.mu.Unlock()
	}
}

// addRun adds the summary of a run to the list.
func (l *activityLog) addRun(t *excerpt, h *happened, at position) {
	t.run.Outcome = h.outcome
	l.runs.summary(t.Node, at, l.words.keepRun(h, t.run))
}

func (l *activityLog) add(t *excerpt, at position) {
	e := &t.Event
	if l.repeats.seenBefore(e.Node, e.ID) {
		return
	}
	l.options.Changed()
	h := l.words.keep(e)
	l.counts.report(t, at.seq)
	it := l.events.newItem(e.Node, at, h)
	l.events.put(it)
	e.Node, e.Resource, e.CorrelationID, e.By = it.siblings.node, h.resource, h.correlation, h.by
	l.followers.publish(it)
	if t.run != nil {
		l.addRun(t, &h, at)
		l.points.add(e.Time, t)
	} else if e.Kind == model.KindTransaction && e.RunID != "" {
		l.runs.part(e.Node, at, l.words.keepRun(&h, &RunRow{Started: e.Time}))
	}
	for _, a := range t.attention {
		a.Resource = l.words.strings.Share(a.Resource)
		l.attention.Add(e.Node, e.Time, a)
	}
	// A node answers a request once. Its later answers, while the request is remembered, are only events.
	if e.Kind == model.KindEnsure && e.CorrelationID != "" && !l.repeats.seenBefore(e.Node, "answer "+keyOf(e.Resource, e.CorrelationID)) {
		l.requests.add(at, t)
	}
}
