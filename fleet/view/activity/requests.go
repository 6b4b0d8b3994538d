package activity

import (
	"cmp"

	"github.com/musterfleet/muster/model"
)

// maxRequests is how many requests are kept.
const maxRequests = 1000

// requests are the newest requests, by the place of the first answer that was told.
type requests struct {
	*bounded[*RequestRow]
	byKey map[string]*RequestRow
	// agree is by how many more answers a row's sender was named than by others, by key.
	agree map[string]int
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
	r := requests{newBounded[*RequestRow](maxRequests), map[string]*RequestRow{}, map[string]int{}}
	r.dropped = func(it *item[*RequestRow]) {
		delete(r.byKey, keyOf(it.value.Resource, it.value.ID))
		delete(r.agree, keyOf(it.value.Resource, it.value.ID))
	}

	return r
}

// add counts an answer. A node could answer what nobody asked: the request takes of its share.
func (r requests) add(at place, t *told) {
	e := &t.Event
	key := keyOf(e.Resource, e.CorrelationID)
	row := r.byKey[key]
	if row == nil {
		row = &RequestRow{ID: e.CorrelationID, Resource: cmp.Or(e.Resource, unnamed), First: e.Time, Last: e.Time}
		r.byKey[key] = row
		r.put(r.newItem(e.Node, at, row))
	}
	row.Answers++
	r.name(row, key, t)
	if row.Resource == unnamed && e.Resource != "" {
		row.Resource = e.Resource
	}
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

// name takes over who sent a request by an answer. One node may name anybody: what most of them say counts,
// those of older agents say nothing.
func (r requests) name(row *RequestRow, key string, t *told) {
	switch from := t.from; {
	case from == (model.Sender{}):
	case from == model.Sender{By: row.By, Nodes: row.Nodes, To: row.To, On: row.On}:
		r.agree[key]++
	case r.agree[key] > 0:
		r.agree[key]--
	default:
		row.By, row.Nodes, row.To, row.On, r.agree[key] = from.By, from.Nodes, from.To, from.On, 1
	}
}

// Request returns a request that nodes answered, with those of which an answer is kept, and whether it is known: the
// run of an id where there is no other request of it.
func (l *Log) Request(id string) (row RequestRow, answered map[string]bool, known bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	found, known := l.requests.byKey[id]
	if !known {
		found, known = l.requests.byKey[keyOf(ofRun, id)]
	}
	if !known {
		return RequestRow{}, nil, false
	}
	answered = map[string]bool{}
	l.events.newest(0, func(it *item[happened]) bool {
		if it.value.kind == model.KindEnsure && it.value.correlation == id && (it.value.resource == ofRun) == (found.Resource == ofRun) {
			answered[it.siblings.node] = true
		}
		return true
	})

	return *found, answered, true
}

// Requests returns the requests that nodes answered, the newest first.
func (l *Log) Requests() []RequestRow {
	l.mu.RLock()
	defer l.mu.RUnlock()
	out := []RequestRow{}
	l.requests.newest(0, func(it *item[*RequestRow]) bool {
		out = append(out, *it.value)
		return true
	})

	return out
}
