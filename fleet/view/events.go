package view

import (
	"cmp"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
)

// happened is a compact Event with its place and node.
type happened struct {
	id, runID, text string
	at              instant
	*sameEvent
}

type sameEvent struct {
	kind                                string
	outcome                             model.Outcome
	cause                               model.Cause
	manifest, resource, correlation, by string
}

func eventOf(it *item[happened]) Event {
	h := &it.value

	return Event{
		Seq: it.seq, ID: h.id, Time: h.at.Time(), Node: it.siblings.node, Kind: h.kind, Outcome: h.outcome, Cause: h.cause, Manifest: h.manifest, Resource: h.resource,
		RunID: h.runID, CorrelationID: h.correlation, By: h.by, Text: h.text,
	}
}

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

type sameRun struct {
	manifest string
	revision uint64
	cause    model.Cause
	retry    bool
	outcome  model.Outcome
	counts   model.Counts
}

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
		Seq: seq, ID: cutText(r.ID, maxWord), Time: stored, Node: r.Node, Kind: r.Kind, Outcome: r.Outcome, Cause: model.Cause(cutText(string(r.Cause), maxWord)),
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
		t.attention = []attention{{Kind: kindDrifting, Manifest: manifest, Resource: t.Resource, Text: t.Text}} // noop
	}
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
	// MaxText limits the bytes of an event's description, MaxWord of a name or an id that a node chose.
	maxText = 300
	maxWord = 256
	// maxInterned limits the shared texts, maxShared the bytes of each, because nodes choose them.
	maxInterned, maxShared = 50_000, maxWord + len("…")
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

type internedTexts map[string]string

// Share returns the stored text that equals a text. It returns a long text unchanged.
func (i internedTexts) Share(text string) string {
	if text == "" || len(text) > maxShared {
		return text
	}
	if known, is := i[text]; is {
		return known
	}
	if len(i) >= maxInterned {
		clear(i)
	}
	text = strings.Clone(text)
	i[text] = text

	return text
}

// instant is a compact UTC time, limited to the years 1678 to 2262.
type instant int64

// never is the zero time.
const never instant = math.MinInt64

func instantOf(t time.Time) instant {
	const perSecond = int64(time.Second)
	switch seconds := t.Unix(); {
	case t.IsZero():
		return never
	case seconds > math.MaxInt64/perSecond-1:
		return math.MaxInt64
	case seconds < math.MinInt64/perSecond+1:
		return never + 1
	}

	return instant(t.UnixNano())
}

// Time returns the time.
func (i instant) Time() time.Time {
	if i == never {
		return time.Time{}
	}

	return time.Unix(0, int64(i)).UTC()
}

// maxSame limits the shared values, because nodes choose them.
const maxSame = 4096

// interned stores values that many entries share, each once.
type interned[T comparable] map[T]*T

// Share returns the stored value that equals a value. Do not change it.
func (s interned[T]) Share(v T) *T {
	if known := s[v]; known != nil {
		return known
	}
	if len(s) >= maxSame {
		clear(s)
	}
	s[v] = &v

	return &v
}
