package view

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
)

type excerpt struct {
	Event
	// run is nil except for the summary of a run. repaired is its number of repairs.
	run      *RunRow
	repaired int
	// from is the sender and the target of the answered request.
	from model.Sender
	// attention are the resources of the report that fail, drift or flap.
	attention []attention
}

// excerptOf decodes a report. For an unreadable document it uses only the envelope.
func excerptOf(r model.Report, seq uint64, stored time.Time) excerpt {
	t := excerpt{Event: Event{
		Seq: seq, ID: cutText(r.ID, maxWord), Time: stored.UTC(), Node: r.Node, Kind: r.Kind, Outcome: r.Outcome, Cause: model.Cause(cutText(string(r.Cause), maxWord)),
		Manifest: cutText(r.Manifest, maxWord), RunID: cutText(r.RunID, maxWord), CorrelationID: cutText(r.CorrelationID, maxWord),
	}}
	switch r.Type {
	case model.ProtocolRun:
		t.addRun(decoded[model.Run](r.Data), r)
	case model.ProtocolTransaction:
		t.addTransaction(decoded[model.Transaction](r.Data))
	case model.ProtocolEnsureResponse, model.ProtocolRunResponse:
		t.addAnswer(decoded[model.EnsureResponse](r.Data))
	case model.ProtocolHealth:
		h := decoded[model.HealthReport](r.Data)
		t.Resource = cutText(h.Resource.String(), maxWord)
		_, text := DescribeReport(r)
		t.Text = firstLine(h.Check+": "+text, maxText)
	case model.ProtocolNode:
		t.addNode(decoded[model.NodeState](r.Data), r)
	}

	return t
}

func (t *excerpt) addRun(r *model.Run, envelope model.Report) {
	t.Text = firstLine(DescribeRun(r), maxText)
	// A node could report any number of repairs.
	t.repaired = max(min(r.Drift.Repaired, r.Counts.Total), 0)
	t.run = &RunRow{
		RunID: t.RunID, Node: t.Node, Manifest: t.Manifest, Revision: envelope.Revision, Cause: t.Cause, Retry: r.Retry, Outcome: t.Outcome,
		Started: nodeTime(r.Started), Duration: max(r.Duration, 0), Counts: r.Counts,
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
	found := attention{Kind: kindDrifting, Manifest: nameOf(t.Manifest), Resource: t.Resource, Text: t.Text}
	switch {
	case t.Outcome == model.OutcomeFailed:
		found.Kind = kindFailing
	case d.Drift != nil:
		found.Text = firstLine(cmp.Or(d.Drift.From, text), maxText)
	case !d.Changed || !t.Cause.IsUnasked(): // a noop run finds drift and repairs none
		return
	}
	t.attention = []attention{found}
}

// unnamed is a request without a resource in its answers: it was refused, or cancelled before it began.
const unnamed = "ensure"

// ofRun is the subject of the answers to a run request.
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

// cutTarget returns a target, or nothing if it is longer than agents repeat.
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

// nameOf returns the name of the manifest of a key. Other text is returned unchanged.
func nameOf(key string) string {
	if _, name, ok := model.SplitKey(key); ok {
		return strings.Clone(name)
	}

	return key
}

const (
	// maxText limits the bytes of an event's description, maxWord of a name or an id that a node chose.
	maxText = 300
	maxWord = 256
)

// firstLine returns the first line of a text. A long line is cut. It does not retain the memory of the text.
func firstLine(text string, most int) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if first = cutText(first, most); len(first) < len(text) {
		first = strings.Clone(first)
	}

	return first
}

// cutText returns a text that is cut if it is long.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}

	return text[:most] + "…"
}
