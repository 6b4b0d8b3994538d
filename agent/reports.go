package agent

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/outbox"
	"github.com/musterfleet/muster/model"
)

// maxDocument returns how long a report or a state may be, encoded.
func (a *Agent) maxDocument() int {
	if p, ok := a.opts.Publisher.(MessageBound); ok {
		return bounds.MaxDocument(p.MaxMessage())
	}

	return bounds.MaxDocument(0)
}

// append puts a report into the outbox. One that cannot be encoded is logged.
func (a *Agent) append(r model.Report, document any) {
	data, err := json.Marshal(document)
	if err == nil {
		r.ID, r.Time, r.Data = ksuid.New().String(), time.Now().UTC(), data
		_, err = a.outbox.Append(r)
	}
	if err != nil {
		a.log.Error("a report was lost", "kind", r.Kind, "outcome", r.Outcome, "run_id", r.RunID, "error", err)
	}
}

// reportTransaction reports what happened to one resource. One that was stable
// is told by the summary alone, and so is one that is not managed here: that
// comes with the run that somebody asked for, but not with every run after it.
func (a *Agent) reportTransaction(t *model.Transaction) {
	switch t.Outcome() {
	case model.OutcomeStable:
		return
	case model.OutcomeSkipped:
		if !t.Noop && weight(t.Cause) <= weight(model.CauseHealth) {
			return
		}
	}
	a.append(model.Report{
		Kind: model.KindTransaction, Outcome: t.Outcome(), Type: t.Protocol, RunID: t.RunID, Manifest: t.Manifest,
		Revision: t.Revision, Digest: t.Digest, Cause: t.Cause, CorrelationID: t.CorrelationID,
	}, bounds.Transaction(t, a.maxDocument()))
}

// reportRun reports a summary.
func (a *Agent) reportRun(r *model.Run) {
	r.Errors = bounds.Errors(r.Errors, a.maxDocument())
	a.append(model.Report{
		Kind: model.KindRun, Outcome: r.Outcome(), Type: r.Protocol, RunID: r.RunID, Manifest: r.Manifest,
		Revision: r.Revision, Digest: r.Digest, Cause: r.Cause, CorrelationID: r.CorrelationID,
	}, r)
}

// reportNode reports an event of the node.
func (a *Agent) reportNode(event model.NodeEvent, message string) {
	a.reportNodeOn("", event, message)
}

// reportNodeOn reports an event of the node that is about a manifest.
func (a *Agent) reportNodeOn(key string, event model.NodeEvent, message string) {
	s := a.State()
	s.Event, s.Message = event, message
	a.append(model.Report{Kind: model.KindNode, Outcome: model.Outcome(event), Type: model.ProtocolNode, Manifest: key}, s)
}

// droppedReport is the report about dropped ones. It is made while the outbox
// is locked, so it holds nothing that asks the outbox.
func (a *Agent) droppedReport(lost outbox.Lost) model.Report {
	from, to := lost.Ranges[0].From, lost.Ranges[len(lost.Ranges)-1].To
	s := model.NodeState{
		Protocol: model.ProtocolNode, Node: a.opts.Config.Node, Event: model.NodeDropped, Version: a.opts.Version, Started: a.started,
		At: time.Now().UTC(), Groups: []string{}, Dropped: lost.Reports, DroppedFrom: from, DroppedTo: to, DroppedRanges: lost.Ranges,
		Message: fmt.Sprintf("%d reports between %d and %d were dropped: there was no room for them, they were damaged, or no server takes them", lost.Reports, from, to),
	}
	data, err := json.Marshal(s)
	if err != nil {
		data = fmt.Appendf(nil, `{"protocol":%q,"event":"dropped","dropped_from":%d,"dropped_to":%d}`, model.ProtocolNode, from, to)
	}

	return model.Report{ID: ksuid.New().String(), Time: s.At, Kind: model.KindNode, Outcome: model.Outcome(model.NodeDropped), Type: model.ProtocolNode, Data: data}
}

// reportEnsure reports the final response to a request.
func (a *Agent) reportEnsure(response model.EnsureResponse) {
	response.Error = bounds.TextTo(response.Error, bounds.MaxError)
	out := model.Report{Kind: model.KindEnsure, Type: response.Protocol, Cause: model.CauseEnsure, CorrelationID: response.ID}
	switch {
	case response.State != nil:
		response.State = bounds.Transaction(response.State, a.maxDocument()-2*bounds.MaxError)
		out.Outcome, out.RunID = response.State.Outcome(), response.State.RunID
	case response.Phase == model.EnsureExpired:
		out.Outcome = model.OutcomeNotRun
	default:
		out.Outcome = model.OutcomeFailed
	}
	a.append(out, response)
	a.sync()
}
