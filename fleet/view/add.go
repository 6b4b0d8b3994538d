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
		f.strings.compactEvent(&t.Event)
		f.addRun(&t, place{m.Seq, i})
		f.changes++
		f.mu.Unlock()
	}
}

// addRun lists the summary of a run.
func (f *Fleet) addRun(t *told, at place) {
	row, e := *t.run, &t.Event
	row.Node, row.Manifest, row.RunID, row.Cause, row.Outcome = e.Node, e.Manifest, e.RunID, e.Cause, e.Outcome
	f.runs.summary(at, row)
}

func (f *Fleet) add(t *told, at place) {
	e := &t.Event
	if f.repeats.seenBefore(e.Node, e.ID) {
		return
	}
	f.changes++
	f.strings.compactEvent(e)
	f.counts.report(t, at.seq)
	f.events.put(&item[Event]{place: at, node: e.Node, value: *e})
	if at.compare(f.last) > 0 {
		f.last = at
		f.publish(e)
	}
	if t.run != nil {
		f.addRun(t, at)
		f.points.add(e.Time, t)
	} else if e.Kind == model.KindTransaction && e.RunID != "" {
		f.runs.part(at, e)
	}
	for _, a := range t.attention {
		a.resource = f.strings.share(a.resource)
		f.top.add(e, a)
	}
	// A node answers a request once: what else it says of it, while that is remembered, is an event alone.
	if e.Kind == model.KindEnsure && e.CorrelationID != "" && !f.repeats.seenBefore(e.Node, "answer "+e.CorrelationID) {
		f.requests.add(at, t)
	}
}

// compactEvent shares what events have in common.
func (i interned) compactEvent(e *Event) {
	e.Node, e.Kind, e.Manifest, e.Resource = i.share(e.Node), i.share(e.Kind), i.share(e.Manifest), i.share(e.Resource)
	e.Outcome, e.Cause = model.Outcome(i.share(string(e.Outcome))), model.Cause(i.share(string(e.Cause)))
	e.CorrelationID, e.By = i.share(e.CorrelationID), i.share(e.By)
}
