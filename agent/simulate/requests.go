package simulate

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/manifest"
)

// maxRequests is how many requests a node remembers, so that one that comes again is not
// executed again.
const maxRequests = 1000

// requests are those that a node accepted.
type requests struct {
	mu      sync.Mutex
	known   map[string]*request
	waiting []*request
}

// request is a request that a node accepted.
type request struct {
	model.EnsureRequest
	// run is what a run request asks for, nil for one of a resource.
	run  *model.RunRequest
	name string
	// last is its last response, respond are those who wait for others.
	last    model.EnsureResponse
	respond []func(model.EnsureResponse)
}

// add accepts a request unless its id is known, and calls respond with its last response.
func (r *requests) add(q *request, respond func(model.EnsureResponse)) {
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

// next removes and returns the oldest request that waits, nil for none.
func (r *requests) next() *request {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		return nil
	}
	q := r.waiting[0]
	r.waiting = r.waiting[1:]

	return q
}

// say hands a response to all who wait for it. It reports false where the last one was final.
func (r *requests) say(q *request, response model.EnsureResponse) bool {
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

// Ensure accepts an ensure request, or a cancel, whoever signed it, and calls respond with each of its
// responses, as an agent does.
func (n *Node) Ensure(_ context.Context, data []byte, respond func(model.EnsureResponse)) {
	n.accept("", data, respond)
}

// Command accepts an ensure request, or a cancel, that waited for the node under an id.
func (n *Node) Command(id string, data []byte) { n.accept(id, data, func(model.EnsureResponse) {}) }

// Run accepts a run request, whoever signed it, as Ensure does.
func (n *Node) Run(_ context.Context, data []byte, respond func(model.EnsureResponse)) {
	content, err := signed.Content(data)
	q := &request{run: &model.RunRequest{}}
	if err == nil {
		*q.run, err = model.DecodeRunRequest(content)
	}
	q.ID, q.Expires, q.Noop = q.run.ID, q.run.Expires, q.run.Noop
	n.take(q, err, respond)
}

// accept accepts an ensure request; id is that of one without.
func (n *Node) accept(id string, data []byte, respond func(model.EnsureResponse)) {
	content, err := signed.Content(data)
	if err == nil && model.IsCancelRequest(content) {
		n.cancel(content, id != "", respond)
		return
	}
	q := &request{}
	if err == nil {
		q.EnsureRequest, _, err = manifest.ParseRequest("request", content)
	}
	q.ID = cmp.Or(q.ID, id)
	n.take(q, err, respond)
}

// take accepts a request, or rejects it with an error.
func (n *Node) take(q *request, err error, respond func(model.EnsureResponse)) {
	if err != nil {
		response := n.response(q, model.EnsureFailed)
		response.Error = err.Error()
		if respond(response); q.ID != "" {
			n.report.Ensure(response)
		}
		return
	}
	var named struct{ Name string }
	_ = json.Unmarshal(q.Properties, &named) // it is shown without one
	q.name, q.ID = named.Name, cmp.Or(q.ID, ksuid.New().String())
	q.last = n.response(q, model.EnsureAcknowledged)
	n.requests.add(q, respond)
	n.asked.Notify()
}

func (n *Node) response(q *request, phase model.EnsurePhase) model.EnsureResponse {
	out := model.EnsureResponse{Protocol: model.ProtocolEnsureResponse, ID: q.ID, Phase: phase, Node: n.Node}
	if q.run != nil {
		out.Protocol = model.ProtocolRunResponse
	}

	return out
}

// answer executes the requests that wait.
func (n *Node) answer(ctx context.Context) {
	for q := n.requests.next(); q != nil; q = n.requests.next() {
		if !q.Expires.IsZero() && time.Now().After(q.Expires) {
			n.conclude(q, n.response(q, model.EnsureExpired))
			continue
		}
		if !n.requests.say(q, n.response(q, model.EnsureRunning)) {
			continue // it was cancelled
		}
		if tasks.Pause(ctx, min(n.RunTime, DefaultRunTime), nil); ctx.Err() != nil {
			return
		}
		if q.run != nil {
			n.conclude(q, n.ran(ctx, q))
			continue
		}
		n.conclude(q, n.executed(q))
	}
}

// executed returns the response to a request that was executed.
func (n *Node) executed(q *request) model.EnsureResponse {
	run := n.begin("ensure", 0, "", model.CauseEnsure)
	run.Noop, run.CorrelationID = q.Noop, q.ID
	t := n.transaction(run, &Resource{Ref: model.Ref{Type: q.Type, Name: q.name}, Ensure: model.EnsurePresent, Properties: q.Properties})
	t.Duration = min(n.RunTime, DefaultRunTime)
	change := model.Change{Action: "store", Message: "Would have changed it"}
	if q.Type == "exec" {
		change = model.Change{Action: "execute", Message: "Would have executed"}
	}
	response := n.response(q, model.EnsureDone)
	response.State = t
	switch {
	case q.Noop:
		t.Changed, t.Changes = true, []model.Change{change}
	case n.Error != "":
		response.Phase, t.Failed, t.Errors = model.EnsureFailed, true, []string{n.Error}
	default:
		t.Changed, t.Changes = true, []model.Change{change.Done()}
	}
	if q.Type == "exec" && !q.Noop {
		t.Outputs = map[string]any{"stdout": "simulated: " + q.name + "\n", "stderr": n.Error, "exit_code": len(t.Errors)}
	}

	return response
}

// ran runs what a run request asks for, and returns the response.
func (n *Node) ran(ctx context.Context, q *request) model.EnsureResponse {
	response, known := n.response(q, model.EnsureDone), map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(n.active)) {
		_, name, _ := model.SplitKey(key)
		known[name] = true
		if len(q.run.Manifests) > 0 && !slices.Contains(q.run.Manifests, name) {
			continue
		}
		if run := n.runFor(ctx, key, model.CauseRequest, q); run != nil {
			out := model.RequestedRun{Manifest: key, Revision: run.Revision, RunID: run.RunID, Outcome: run.Outcome(), Noop: run.Noop, Counts: run.Counts}
			if len(run.Errors) > 0 {
				out.Error = run.Errors[0]
			}
			response.Runs = append(response.Runs, out)
		}
	}
	if i := slices.IndexFunc(q.run.Manifests, func(name string) bool { return !known[name] }); i >= 0 {
		response.Phase, response.Error = model.EnsureFailed, q.run.Manifests[i]+": not assigned to this node"
	} else if model.OutcomeOf(response.Runs).IsFailure() {
		response.Phase = model.EnsureFailed
	}

	return response
}

// conclude responds to a request, and reports that.
func (n *Node) conclude(q *request, response model.EnsureResponse) {
	if n.requests.say(q, response) {
		n.report.Ensure(response)
	}
}

// Status answers a request for the state of a resource: it is in its state.
func (n *Node) Status(_ context.Context, data []byte) (any, error) {
	q, _, err := manifest.ParseRequest("request", data)
	if err != nil {
		return nil, err
	}
	var named struct{ Name string }
	_ = json.Unmarshal(q.Properties, &named)

	return model.CommonState{Protocol: model.StateProtocol(q.Type), ResourceType: q.Type, Name: named.Name, Ensure: model.EnsurePresent}, nil
}
