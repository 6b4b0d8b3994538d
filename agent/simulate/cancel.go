package simulate

import (
	"slices"

	"github.com/musterfleet/muster/model"
)

// cancel cancels a request that has not started, like an agent. It remembers an unknown id, so that a later
// request is cancelled.
func (r *Requests) cancel(data []byte, isCommand bool, respond func(model.EnsureResponse)) {
	c, err := model.DecodeCancelRequest(data)
	if err != nil {
		respond(model.EnsureResponse{Protocol: model.ProtocolEnsureResponse, Node: r.machine.Node, ID: c.Request, Error: err.Error()})
		return
	}
	response, reported := r.accepted.cancel(r.machine, c, isCommand, respond)
	if reported {
		r.report.Ensure(response)
	}
}

// cancel sends the last response to the receivers of a cancel. It reports whether the request was cancelled
// now and must be reported.
func (r *accepted) cancel(m *machine, c model.CancelRequest, isCommand bool, respond func(model.EnsureResponse)) (model.EnsureResponse, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.known[c.Request]
	isKnown := q != nil
	if !isKnown {
		q = &request{EnsureRequest: model.EnsureRequest{ID: c.Request}}
		r.remember(q)
	}
	if isKnown && q.last.Phase != model.EnsureAcknowledged {
		respond(q.last)
		q.respond = append(q.respond, respond)
		return q.last, false
	}
	q.last = m.response(q, model.EnsureCancelled)
	q.last.Error = c.String()
	for _, respond := range q.respond {
		respond(q.last)
	}
	answer := q.last
	answer.Unknown = !isKnown
	respond(answer)
	q.respond = nil
	r.waiting = slices.DeleteFunc(r.waiting, func(w *request) bool { return w == q })

	return q.last, isKnown || isCommand
}

// remember stores a request by its id. The caller holds the lock.
func (r *accepted) remember(q *request) {
	if r.known == nil || len(r.known) >= maxRequests {
		r.known = map[string]*request{}
	}
	r.known[q.ID] = q
}
