package view

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// StreamMessage is what the stream of reports stored at once: one report, or a batch.
type StreamMessage struct {
	// Seq is its number in the stream, Stored when the server took it: by that it is decided what
	// happened when, since clocks of nodes may be wrong.
	Seq     uint64
	Stored  time.Time
	Reports []model.Report
	// Invalid is why some of it cannot be read, nil where all can.
	Invalid error
}

// Add tells what the stream has. The same report again changes nothing; the order does not
// matter.
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

// AddRuns tells runs ahead of the reports between them and those that are known: they are in
// lists, and nothing else counts them before Add tells them again.
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

// addRun lists the summary of a run.
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
	// A node answers a request once: what else it says of it, while that is remembered, is an event alone.
	if e.Kind == model.KindEnsure && e.CorrelationID != "" && !l.repeats.seenBefore(e.Node, "answer "+keyOf(e.Resource, e.CorrelationID)) {
		l.requests.add(at, t)
	}
}
