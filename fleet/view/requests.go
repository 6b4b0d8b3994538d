package view

import (
	"cmp"
	"maps"

	"github.com/musterfleet/muster/model"
)

// maxRequests is how many requests are kept.
const maxRequests = 1000

// requests are the newest requests, by the place of the first answer that was added.
type requests struct {
	*bounded[*RequestRow]
	// byKey are those that are kept, see keyOf, and votes what their answers say of them.
	byKey map[string]*RequestRow
	votes map[string]*votes
	// answerers are who answered them.
	answerers *answerers
}

// votes are what the answers of a request say that it was. One node may say anything: what most of them say counts.
type votes struct {
	sender   vote[model.Sender]
	resource vote[string]
}

// vote is what most say of something, as far as one value can tell that is kept: the last one that more said than others.
type vote[T comparable] struct {
	value T
	lead  int
}

// add counts what one says.
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

// keyOf returns the key of a request by what answers of it are about, and its id: a run may have the id of another
// request, which whoever may ask for no other one can give it.
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

// add counts an answer. A node could answer what nobody asked: the request takes of its share.
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
			return // all that there is room for is newer
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

// boundAnswerers gives up who answered the oldest requests.
func (r requests) boundAnswerers() {
	if r.answerers.count <= maxAnswerers {
		return
	}
	r.all.Ascend(func(it *item[*RequestRow]) bool {
		r.answerers.clear(it.value)
		return r.answerers.count > maxAnswerers
	})
}

// describe says in a row what its answers say, of which one is new. Those of older agents do not say who sent the
// request, those of nodes that refused it not what was asked.
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

// Answered is a request that nodes answered.
type answeredRequest struct {
	RequestRow
	// By are the nodes that answered, as far as they are kept.
	By map[string]bool
	// SameID is that a run and another request have the id: this is one of them.
	SameID bool
}

// Request returns a request that nodes answered, and whether it is known: the run with an id, or what is no run, of
// which the run takes the place only where there is nothing else with the id. How many answer decides nothing: a node may
// answer what nobody asked.
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

// Requests returns the requests that nodes answered, the newest first.
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
