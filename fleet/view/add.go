package view

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// Message is what the stream of reports stored at once: one report, or a batch.
type Message struct {
	// Seq is its number in the stream, Stored when the server took it: by that is told what
	// happened when, since clocks of nodes may be wrong.
	Seq     uint64
	Stored  time.Time
	Reports []model.Report
	// Invalid is why some of it cannot be read, nil where all can.
	Invalid error
}

// Add tells what the stream has. The same report again changes nothing; the order does not
// matter.
func (f *Fleet) Add(m Message) {
	all := make([]told, 0, 1) // most messages are one report
	for _, r := range m.Reports {
		all = append(all, tell(r, m.Seq, m.Stored))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.message(&m)
	if m.Invalid != nil {
		f.progress.invalid++
		f.progress.lastInvalid = line(m.Invalid.Error(), maxText)
		f.changes++
	}
	for i := range all {
		f.add(&all[i], place{m.Seq, i})
	}
}

// AddRuns tells runs ahead of the reports between them and those that are known: they are in
// lists, and nothing else counts them before Add tells them again.
func (f *Fleet) AddRuns(m Message) {
	for i, r := range m.Reports {
		t := tell(r, m.Seq, m.Stored)
		if t.run == nil {
			continue
		}
		f.mu.Lock()
		h := f.words.keep(&t.Event)
		f.addRun(&t, &h, place{m.Seq, i})
		f.changes++
		f.mu.Unlock()
	}
}

// addRun lists the summary of a run.
func (f *Fleet) addRun(t *told, h *happened, at place) {
	t.run.Outcome = h.outcome
	f.runs.summary(t.Node, at, f.words.keepRun(h, t.run))
}

func (f *Fleet) add(t *told, at place) {
	e := &t.Event
	if f.repeats.seenBefore(e.Node, e.ID) {
		return
	}
	f.changes++
	h := f.words.keep(e)
	f.counts.report(t, at.seq)
	it := f.events.newItem(e.Node, at, h)
	f.events.put(it)
	e.Node, e.Resource, e.CorrelationID, e.By = it.siblings.node, h.resource, h.correlation, h.by
	if at.compare(f.last) > 0 {
		f.last = at
		f.publish(it)
	}
	if t.run != nil {
		f.addRun(t, &h, at)
		f.points.add(e.Time, t)
	} else if e.Kind == model.KindTransaction && e.RunID != "" {
		f.runs.part(e.Node, at, f.words.keepRun(&h, &RunRow{Started: e.Time}))
	}
	for _, a := range t.attention {
		a.resource = f.words.strings.share(a.resource)
		f.top.add(e, a)
	}
	// A node answers a request once: what else it says of it, while that is remembered, is an event alone.
	if e.Kind == model.KindEnsure && e.CorrelationID != "" && !f.repeats.seenBefore(e.Node, "answer "+e.CorrelationID) {
		f.requests.add(at, t)
	}
}
