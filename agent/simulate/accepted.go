package simulate

import (
	"sync"

	"github.com/musterfleet/muster/model"
)

// maxRequests limits the remembered requests of a node, which are not executed again.
const maxRequests = 1000

// accepted are the requests that a node accepted.
type accepted struct {
	mu      sync.Mutex
	known   map[string]*request
	waiting []*request
}

// request is a request that a node accepted.
type request struct {
	model.EnsureRequest
	// run is a run request, nil for a request of a resource.
	run  *model.RunRequest
	name string
	// from is the unverified sender.
	from *model.Sender
	// last is the last response. respond are the waiting receivers of further responses.
	last    model.EnsureResponse
	respond []func(model.EnsureResponse)
}

// add accepts a request unless its id is known, and calls respond with its last response.
func (r *accepted) add(q *request, respond func(model.EnsureResponse)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.known[q.ID]
	if known == nil {
		r.remember(q)
		known = q
		r.waiting = append(r.waiting, q)
	}
	known.respond = append(known.respond, respond)
	respond(known.last)
}

// knows reports whether a request with an id was accepted.
func (r *accepted) knows(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.known[id] != nil
}

// next removes and returns the oldest waiting request, nil for none.
func (r *accepted) next() *request {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		return nil
	}
	q := r.waiting[0]
	r.waiting = r.waiting[1:]

	return q
}

// say sends a response to all receivers. It returns false if the last response was final.
func (r *accepted) say(q *request, response model.EnsureResponse) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.last.Phase.Final() {
		return false
	}
	q.last = response
	for _, respond := range q.respond {
		respond(response)
	}
	if response.Phase.Final() {
		q.respond = nil
	}

	return true
}
