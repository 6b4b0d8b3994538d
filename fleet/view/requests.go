package view

import (
	"cmp"
	"maps"

	"github.com/musterfleet/muster/model"
)

// maxRequests limits the retained requests.
const maxRequests = 1000

// requests are the newest requests, by the place of their first answer.
type requests struct {
	*bounded[*RequestRow]
	// byKey are the retained requests, see keyOf. votes are the claims of their answers.
	byKey map[string]*RequestRow
	votes map[string]*votes
	// answerers are the nodes that answered them.
	answerers *answerers
}

// votes are the claims of the answers about a request. A single node may lie, so the majority decides.
type votes struct {
	sender   vote[model.Sender]
	resource vote[string]
}

// vote is the majority value, as far as one stored value shows it: the last value with more votes than
// others.
type vote[T comparable] struct {
	value T
	lead  int
}

// add counts one vote.
func (v *vote[T]) add(value T) {
	switch {
	case value == v.value:
		v.lead++
	case v.lead > 0:
		v.lead--
	default:
		v.value, v.lead = value, 1
	}
}

// keyOf returns the key of a request: its kind and its id. A user who may only request runs could otherwise
// reuse the id of another request.
func keyOf(resource, id string) string {
	if resource == ofRun {
		return ofRun + " " + id
	}

	return id
}

func newRequests() requests {
	r := requests{newBounded[*RequestRow](maxRequests), map[string]*RequestRow{}, map[string]*votes{}, &answerers{of: map[*RequestRow]map[string]bool{}}}
	r.dropped = func(it *item[*RequestRow]) {
		key := keyOf(it.value.Resource, it.value.ID)
		delete(r.byKey, key)
		delete(r.votes, key)
		r.answerers.end(it.value)
	}

	return r
}

// add counts an answer. The request uses the share of the answering node, because a node may answer a request
// that does not exist.
func (r requests) add(at position, t *excerpt) {
	e := &t.Event
	key := keyOf(e.Resource, e.CorrelationID)
	row := r.byKey[key]
	if row == nil {
		row = &RequestRow{ID: e.CorrelationID, Resource: cmp.Or(e.Resource, unnamed), First: e.Time, Last: e.Time}
		r.byKey[key], r.votes[key] = row, &votes{}
		r.answerers.begin(row)
		r.put(r.newItem(e.Node, at, row))
		if r.byKey[key] != row {
			return // the list is full of newer requests
		}
	}
	if !r.answerers.add(row, e.Node) {
		return
	}
	r.boundAnswerers()
	row.Answers++
	r.votes[key].describe(row, t)
	if e.Time.Before(row.First) {
		row.First = e.Time
	}
	if e.Time.After(row.Last) {
		row.Last = e.Time
	}
	switch {
	case e.Outcome.IsFailure(), e.Outcome == model.OutcomeUnmet:
		row.Failed++
	case e.Outcome == model.OutcomeChanged, e.Outcome == model.OutcomeRefreshed:
		row.Changed++
	}
}

// boundAnswerers forgets the answering nodes of the oldest requests.
func (r requests) boundAnswerers() {
	if r.answerers.count <= maxAnswerers {
		return
	}
	r.all.Ascend(func(it *item[*RequestRow]) bool {
		r.answerers.clear(it.value)
		return r.answerers.count > maxAnswerers
	})
}

// describe sets the row of a request from its answers, one of which is new. Answers of older agents lack the
// sender, and refusals lack the request.
func (v *votes) describe(row *RequestRow, t *excerpt) {
	if t.from != (model.Sender{}) {
		v.sender.add(t.from)
		from := v.sender.value
		row.By, row.Nodes, row.To, row.On = from.By, from.Nodes, from.To, from.On
	}
	if t.Resource != "" && t.Resource != unnamed {
		v.resource.add(t.Resource)
		row.Resource = v.resource.value
	}
}

// answeredRequest is a request with its answering nodes.
type answeredRequest struct {
	RequestRow
	// By are the remembered nodes that answered.
	By map[string]bool
	// SameID means that a run request and another request have the id. This is one of them.
	SameID bool
}

// Request returns an answered request with an id, and whether it is known. With run it returns the run
// request. Without run it returns another request, or the run request if there is no other. The number of
// answers does not matter, because a node may answer any id.
func (l *activityLog) Request(id string, run bool) (out answeredRequest, known bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	asRun, other := l.requests.byKey[keyOf(ofRun, id)], l.requests.byKey[id]
	found := other
	if run || other == nil {
		found = asRun
	}
	if found == nil {
		return answeredRequest{}, false
	}
	if kept := l.requests.answerers.of[found]; kept != nil {
		return answeredRequest{*found, maps.Clone(kept), asRun != nil && other != nil}, true
	}
	answered := map[string]bool{}
	l.events.newest(0, func(it *item[happened]) bool {
		if it.value.kind == model.KindEnsure && it.value.correlation == id && (it.value.resource == ofRun) == found.IsRun() {
			answered[it.siblings.node] = true
		}
		return true
	})

	return answeredRequest{*found, answered, asRun != nil && other != nil}, true
}

// Requests returns the answered requests, newest first.
func (l *activityLog) Requests() []RequestRow {
	l.mu.RLock()
	defer l.mu.RUnlock()
	out := []RequestRow{}
	l.requests.newest(0, func(it *item[*RequestRow]) bool {
		out = append(out, *it.value)
		return true
	})

	return out
}
