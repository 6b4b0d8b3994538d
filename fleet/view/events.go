package view

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// happened is a compact Event with its place and node.
type happened struct {
	id, runID, text string
	at              instant
	*sameEvent
}

// sameEvent contains fields that many events share.
type sameEvent struct {
	kind                                string
	outcome                             model.Outcome
	cause                               model.Cause
	manifest, resource, correlation, by string
}

// eventOf returns the compact form of an event.
func eventOf(it *item[happened]) Event {
	h := &it.value

	return Event{
		Seq: it.seq, ID: h.id, Time: h.at.Time(), Node: it.siblings.node, Kind: h.kind, Outcome: h.outcome, Cause: h.cause, Manifest: h.manifest, Resource: h.resource,
		RunID: h.runID, CorrelationID: h.correlation, By: h.by, Text: h.text,
	}
}

// keep returns the compact form of an event.
func (w *eventWords) keep(e *Event) happened {
	share := w.strings.Share

	return happened{e.ID, e.RunID, *w.texts.Share(e.Text), instantOf(e.Time), w.events.Share(sameEvent{
		share(e.Kind), model.Outcome(share(string(e.Outcome))), model.Cause(share(string(e.Cause))), share(e.Manifest), share(e.Resource), share(e.CorrelationID), share(e.By),
	})}
}

// runRow is a compact RunRow with its place and node.
type runRow struct {
	id, error string
	started   instant
	duration  time.Duration
	*sameRun
}

// sameRun contains fields that many runs share.
type sameRun struct {
	manifest string
	revision uint64
	cause    model.Cause
	retry    bool
	outcome  model.Outcome
	counts   model.Counts
}

// rowOf returns the compact form of a run.
func rowOf(it *item[runRow]) RunRow {
	r := &it.value

	return RunRow{
		RunID: r.id, Node: it.siblings.node, Manifest: r.manifest, Revision: r.revision, Cause: r.cause, Retry: r.retry, Outcome: r.outcome, Started: r.started.Time(), Duration: r.duration,
		Counts: r.counts, Error: r.error,
	}
}

// keepRun returns the compact form of a run. It shares its texts with a retained event.
func (w *eventWords) keepRun(h *happened, row *RunRow) runRow {
	return runRow{h.runID, *w.texts.Share(row.Error), instantOf(row.Started), row.Duration, w.runs.Share(sameRun{h.manifest, row.Revision, h.cause, row.Retry, row.Outcome, row.Counts})}
}

// eventWords are the texts that events and runs share.
type eventWords struct {
	strings internedTexts
	// texts are the descriptions of events. They are more diverse, so they have their own table.
	texts  interned[string]
	events interned[sameEvent]
	runs   interned[sameRun]
}

func newEventWords() eventWords {
	return eventWords{internedTexts{}, newInterned[string](), newInterned[sameEvent](), newInterned[sameRun]()}
}
