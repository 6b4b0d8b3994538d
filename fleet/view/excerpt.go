package view

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// excerpt is what a report says, in little memory.
type excerpt struct {
	Event
	// run is nil for all but the summary of a run, repaired how much drift it repaired.
	run      *RunRow
	repaired int
	// from is who sent the request that the report answers, and to whom.
	from model.Sender
	// attention are the resources that fail, drift or flap by it.
	attention []attention
}

// excerptOf reads a report. A document that cannot be read leaves what its envelope says.
func excerptOf(r model.Report, seq uint64, stored time.Time) excerpt {
	t := excerpt{Event: Event{
		Seq: seq, ID: cutText(r.ID, maxWord), Time: stored, Node: r.Node, Kind: r.Kind, Outcome: r.Outcome, Cause: model.Cause(cutText(string(r.Cause), maxWord)),
		Manifest: cutText(r.Manifest, maxWord), RunID: cutText(r.RunID, maxWord), CorrelationID: cutText(r.CorrelationID, maxWord),
	}}
	switch r.Type {
	case model.ProtocolRun:
		t.addRun(decodeReport[model.Run](r.Data), r)
	case model.ProtocolTransaction:
		t.addTransaction(decodeReport[model.Transaction](r.Data))
	case model.ProtocolEnsureResponse, model.ProtocolRunResponse:
		t.addAnswer(decodeReport[model.EnsureResponse](r.Data))
	case model.ProtocolHealth:
		h := decodeReport[model.HealthReport](r.Data)
		t.Resource = cutText(h.Resource.String(), maxWord)
		_, text := DescribeReport(r)
		t.Text = firstLine(h.Check+": "+text, maxText)
	case model.ProtocolNode:
		t.addNode(decodeReport[model.NodeState](r.Data), r)
	}

	return t
}

// decode reads a document; of an invalid one it returns nothing.
func decodeReport[T any](data json.RawMessage) *T {
	v, err := model.DecodeJSON[T](data)
	if err != nil {
		return new(T)
	}

	return v
}

func (t *excerpt) addRun(r *model.Run, envelope model.Report) {
	t.Text = firstLine(DescribeRun(*r), maxText)
	// A node could say that it repaired any number.
	t.repaired = max(min(r.Drift.Repaired, r.Counts.Total), 0)
	t.run = &RunRow{
		Revision: envelope.Revision, Started: r.Started, Duration: max(r.Duration, 0), Counts: r.Counts, Retry: r.Retry,
	}
	if len(r.Errors) > 0 {
		t.run.Error = firstLine(r.Errors[0], maxText)
	}
}

func (t *excerpt) addTransaction(d *model.Transaction) {
	t.Resource = cutText(d.Ref().String(), maxWord)
	text := DescribeTransaction(d)
	t.Text = firstLine(text, maxText)
	if d.Source.Line > 0 && len(d.Errors) > 0 {
		t.Text = firstLine(d.Source.String()+": "+text, maxText)
	}
	manifest := nameOf(t.Manifest)
	switch {
	case t.Outcome == model.OutcomeFailed:
		t.attention = []attention{{Kind: kindFailing, Manifest: manifest, Resource: t.Resource, Text: t.Text}}
	case d.Drift != nil:
		t.attention = []attention{{Kind: kindDrifting, Manifest: manifest, Resource: t.Resource, Text: firstLine(cmp.Or(d.Drift.From, text), maxText)}}
	case d.Changed && t.Cause.IsUnasked():
		t.attention = []attention{{Kind: kindDrifting, Manifest: manifest, Resource: t.Resource, Text: t.Text}} // it is only reported
	}
}

// unnamed is a request of which no answer has the resource: it was refused, or cancelled before it began.
const unnamed = "ensure"

// ofRun is what the answers of a run request are about.
const ofRun = "run"

func (t *excerpt) addAnswer(r *model.EnsureResponse) {
	t.Resource = unnamed
	if r.State != nil {
		t.Resource = cutText(r.State.Ref().String(), maxWord)
	}
	if r.Protocol == model.ProtocolRunResponse {
		t.Resource = ofRun
	}
	t.Text = firstLine(DescribeAnswer(*r), maxText)
	if r.Sender != nil {
		t.By = firstLine(r.Sender.By, maxWord)
		t.from = model.Sender{By: t.By, Nodes: max(r.Sender.Nodes, 0), To: cutTarget(r.Sender.To), On: cutTarget(r.Sender.On)}
	}
}

// kept returns a target; none that is longer than what agents repeat.
func cutTarget(target string) string {
	if len(target) > model.MaxTarget {
		return ""
	}

	return target
}

func (t *excerpt) addNode(n *model.NodeState, r model.Report) {
	_, text := DescribeReport(r)
	t.Text = firstLine(text, maxText)
	if r.Outcome != model.Outcome(model.NodeFlapping) {
		return
	}
	for _, f := range n.Flapping[:min(len(n.Flapping), model.MaxFlapping)] {
		t.attention = append(t.attention, attention{
			Kind: kindFlapping, Manifest: cutText(nameOf(f.Manifest), maxWord), Resource: cutText(f.Resource.String(), maxWord), Text: firstLine(f.By(), maxText),
		})
	}
}

// nameOf returns the name of the manifest that a key assigns; what is no key is one.
func nameOf(key string) string {
	if _, name, ok := model.SplitKey(key); ok {
		return strings.Clone(name)
	}

	return key
}
