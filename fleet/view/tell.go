package view

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet/describe"
	"github.com/musterfleet/muster/model"
)

// told is what a report says, in little memory.
type told struct {
	Event
	// run is nil for all but the summary of a run, repaired how much drift it repaired.
	run      *RunRow
	repaired int
	// asked is how many nodes a request was sent to that the report answers.
	asked int
	// attention are the resources that fail, drift or flap by it.
	attention []attention
}

// attention is a resource that needs some.
type attention struct {
	kind     kind
	manifest string
	resource string
	text     string
}

// kind is why a resource needs attention.
type kind int

const (
	failing kind = iota
	drifting
	flapping
	kinds
)

// tell reads a report. A document that cannot be read leaves what its envelope says.
func tell(r model.Report, seq uint64, stored time.Time) told {
	t := told{Event: Event{
		Seq: seq, ID: cut(r.ID, maxWord), Time: stored, Node: r.Node, Kind: r.Kind, Outcome: r.Outcome, Cause: model.Cause(cut(string(r.Cause), maxWord)),
		Manifest: cut(r.Manifest, maxWord), RunID: cut(r.RunID, maxWord), CorrelationID: cut(r.CorrelationID, maxWord),
	}}
	switch r.Type {
	case model.ProtocolRun:
		t.tellRun(decode[model.Run](r.Data), r)
	case model.ProtocolTransaction:
		t.tellTransaction(decode[model.Transaction](r.Data))
	case model.ProtocolEnsureResponse, model.ProtocolRunResponse:
		t.tellAnswer(decode[model.EnsureResponse](r.Data))
	case model.ProtocolHealth:
		h := decode[model.HealthReport](r.Data)
		t.Resource = cut(h.Resource.String(), maxWord)
		_, text := describe.Report(r)
		t.Text = line(h.Check+": "+text, maxText)
	case model.ProtocolNode:
		t.tellNode(decode[model.NodeState](r.Data), r)
	}

	return t
}

// decode reads a document; of an invalid one it returns nothing.
func decode[T any](data json.RawMessage) *T {
	v, err := model.DecodeJSON[T](data)
	if err != nil {
		return new(T)
	}

	return v
}

func (t *told) tellRun(r *model.Run, envelope model.Report) {
	t.Text = line(describe.Run(*r), maxText)
	// A node could say that it repaired any number.
	t.repaired = max(min(r.Drift.Repaired, r.Counts.Total), 0)
	t.run = &RunRow{
		Revision: envelope.Revision, Started: r.Started, Duration: max(r.Duration, 0), Counts: r.Counts,
	}
	if len(r.Errors) > 0 {
		t.run.Error = line(r.Errors[0], maxText)
	}
}

func (t *told) tellTransaction(d *model.Transaction) {
	t.Resource = cut(d.Ref().String(), maxWord)
	text := describe.Transaction(d)
	t.Text = line(text, maxText)
	if d.Source.Line > 0 && len(d.Errors) > 0 {
		t.Text = line(d.Source.String()+": "+text, maxText)
	}
	manifest := nameOf(t.Manifest)
	switch {
	case t.Outcome == model.OutcomeFailed:
		t.attention = []attention{{failing, manifest, t.Resource, t.Text}}
	case d.Drift != nil:
		t.attention = []attention{{drifting, manifest, t.Resource, line(cmp.Or(d.Drift.From, text), maxText)}}
	case d.Changed && t.Cause.IsUnasked():
		t.attention = []attention{{drifting, manifest, t.Resource, t.Text}} // it is only reported
	}
}

// unnamed is a request of which no answer has the resource: it was refused, or cancelled before it began.
const unnamed = "ensure"

func (t *told) tellAnswer(r *model.EnsureResponse) {
	t.Resource = unnamed
	if r.State != nil {
		t.Resource = cut(r.State.Ref().String(), maxWord)
	}
	if r.Protocol == model.ProtocolRunResponse {
		t.Resource = "run"
	}
	t.Text = line(describe.Answer(*r), maxText)
	if r.Sender != nil {
		t.By, t.asked = line(r.Sender.By, maxWord), max(r.Sender.Nodes, 0)
	}
}

func (t *told) tellNode(n *model.NodeState, r model.Report) {
	_, text := describe.Report(r)
	t.Text = line(text, maxText)
	if r.Outcome != model.Outcome(model.NodeFlapping) {
		return
	}
	for _, f := range n.Flapping[:min(len(n.Flapping), maxFlapping)] {
		t.attention = append(t.attention, attention{flapping, cut(nameOf(f.Manifest), maxWord), cut(f.Resource.String(), maxWord), line(f.By(), maxText)})
	}
}

// nameOf returns the name of the manifest that a key assigns; what is no key is one.
func nameOf(key string) string {
	if _, name, ok := model.SplitKey(key); ok {
		return strings.Clone(name)
	}

	return key
}
