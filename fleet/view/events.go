package view

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// happened is an Event in little memory, at its place and of its node.
type happened struct {
	id, runID, text string
	at              instant
	*sameEvent
}

// sameEvent is what many events have in common.
type sameEvent struct {
	kind                                string
	outcome                             model.Outcome
	cause                               model.Cause
	manifest, resource, correlation, by string
}

// eventOf returns what is kept of an event.
func eventOf(it *item[happened]) Event {
	h := &it.value

	return Event{
		Seq: it.seq, ID: h.id, Time: h.at.Time(), Node: it.siblings.node, Kind: h.kind, Outcome: h.outcome, Cause: h.cause, Manifest: h.manifest, Resource: h.resource,
		RunID: h.runID, CorrelationID: h.correlation, By: h.by, Text: h.text,
	}
}

// keep returns an event in little memory.
func (w *eventWords) keep(e *Event) happened {
	share := w.strings.Share

	return happened{e.ID, e.RunID, *w.texts.Share(e.Text), instantOf(e.Time), w.events.Share(sameEvent{
		share(e.Kind), model.Outcome(share(string(e.Outcome))), model.Cause(share(string(e.Cause))), share(e.Manifest), share(e.Resource), share(e.CorrelationID), share(e.By),
	})}
}

// runRow is a RunRow in little memory, at its place and of its node.
type runRow struct {
	id, error string
	started   instant
	duration  time.Duration
	*sameRun
}

// sameRun is what many runs have in common.
type sameRun struct {
	manifest string
	revision uint64
	cause    model.Cause
	retry    bool
	outcome  model.Outcome
	counts   model.Counts
}

// rowOf returns what is kept of a run.
func rowOf(it *item[runRow]) RunRow {
	r := &it.value

	return RunRow{
		RunID: r.id, Node: it.siblings.node, Manifest: r.manifest, Revision: r.revision, Cause: r.cause, Retry: r.retry, Outcome: r.outcome, Started: r.started.Time(), Duration: r.duration,
		Counts: r.counts, Error: r.error,
	}
}

// keepRun returns a run in little memory, whose words are those of an event that is kept.
func (w *eventWords) keepRun(h *happened, row *RunRow) runRow {
	return runRow{h.runID, *w.texts.Share(row.Error), instantOf(row.Started), row.Duration, w.runs.Share(sameRun{h.manifest, row.Revision, h.cause, row.Retry, row.Outcome, row.Counts})}
}

// words are what events and runs have in common.
type eventWords struct {
	strings internedTexts
	// texts are what happened: that differs more, and pushes out none of the others.
	texts  interned[string]
	events interned[sameEvent]
	runs   interned[sameRun]
}

func newEventWords() eventWords {
	return eventWords{internedTexts{}, newInterned[string](), newInterned[sameEvent](), newInterned[sameRun]()}
}
