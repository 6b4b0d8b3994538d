package simulate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/manifest"
)

// Requests accepts and executes the requests to a node.
type Requests struct {
	machine *machine
	runs    *runs
	report  *reporting.Reporter
	// asked is notified when a request waits.
	asked tasks.Signal

	mu sync.Mutex
	// known are the accepted requests by id. waiting are the requests to execute, oldest first.
	known   map[string]*request
	waiting []*request
}

// maxRequests limits the remembered requests of a node, which are not executed again.
const maxRequests = 1000

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

// Ensure accepts an ensure request or a cancel with any signature. It calls respond with each response.
func (r *Requests) Ensure(_ context.Context, from *model.Sender, data []byte, respond func(model.EnsureResponse)) {
	r.accept(from, "", data, respond)
}

// Command accepts a queued ensure request or cancel.
func (r *Requests) Command(from *model.Sender, id string, data []byte) {
	r.accept(from, id, data, func(model.EnsureResponse) {})
}

// Run accepts a run request with any signature, see Ensure.
func (r *Requests) Run(_ context.Context, from *model.Sender, data []byte, respond func(model.EnsureResponse)) {
	content, err := signed.Content(data)
	q := &request{run: &model.RunRequest{}, from: from}
	if err == nil {
		*q.run, err = model.DecodeRunRequest(content)
	}
	q.ID, q.Expires, q.Noop = q.run.ID, q.run.Expires, q.run.Noop
	r.take(q, err, respond)
}

// Status returns the state of a resource: it is always present.
func (r *Requests) Status(_ context.Context, data []byte) (any, error) {
	q, _, err := manifest.ParseRequest("request", data)
	if err != nil {
		return nil, err
	}
	var named struct{ Name string }
	_ = json.Unmarshal(q.Properties, &named)

	return model.CommonState{Protocol: model.StateProtocol(q.Type), ResourceType: q.Type, Name: named.Name, Ensure: model.EnsurePresent}, nil
}

// accept accepts an ensure request. id is used for a request without an id.
func (r *Requests) accept(from *model.Sender, id string, data []byte, respond func(model.EnsureResponse)) {
	content, err := signed.Content(data)
	if err == nil && model.IsCancelRequest(content) {
		r.cancel(content, id != "", respond)
		return
	}
	q := &request{from: from}
	if err == nil {
		q.EnsureRequest, _, err = manifest.ParseRequest("request", content)
	}
	q.ID = cmp.Or(q.ID, id)
	r.take(q, err, respond)
}

// take accepts a request, or rejects it because of err or a pause. A known request is not executed again: respond
// receives its last response and the later ones.
func (r *Requests) take(q *request, err error, respond func(model.EnsureResponse)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.known[q.ID]
	if err == nil && known == nil {
		err = r.paused(q)
	}
	if err != nil {
		response := r.machine.response(q, model.EnsureFailed)
		response.Error = err.Error()
		if respond(response); q.ID != "" {
			r.report.Ensure(response)
		}
		return
	}
	if known == nil {
		var named struct{ Name string }
		_ = json.Unmarshal(q.Properties, &named) // it is shown without one
		q.name, q.ID = named.Name, cmp.Or(q.ID, ksuid.New().String())
		q.last = r.machine.response(q, model.EnsureAcknowledged)
		r.remember(q)
		r.waiting = append(r.waiting, q)
		known = q
		r.asked.Notify()
	}
	known.respond = append(known.respond, respond)
	respond(known.last)
}

// remember stores a request by its id. The caller holds the lock.
func (r *Requests) remember(q *request) {
	if r.known == nil || len(r.known) >= maxRequests {
		r.known = map[string]*request{}
	}
	r.known[q.ID] = q
}

// paused returns an error if the node is paused, except for a request in noop.
func (r *Requests) paused(q *request) error {
	if p := r.runs.control.Paused(); p != nil && !q.Noop {
		return fmt.Errorf("refused, the node changes nothing now: %s", p)
	}

	return nil
}

func (m *machine) response(q *request, phase model.EnsurePhase) model.EnsureResponse {
	out := model.EnsureResponse{Protocol: model.ProtocolEnsureResponse, ID: q.ID, Phase: phase, Node: m.Node, Sender: q.from}
	if q.run != nil {
		out.Protocol = model.ProtocolRunResponse
	}

	return out
}

// answer executes the waiting requests.
func (r *Requests) answer(ctx context.Context) {
	for q := r.next(); q != nil && ctx.Err() == nil; q = r.next() {
		if response := r.execute(ctx, q); ctx.Err() == nil && r.say(q, response) {
			r.report.Ensure(response)
		}
	}
}

// execute returns the final response to a request. A cancelled request has one already.
func (r *Requests) execute(ctx context.Context, q *request) model.EnsureResponse {
	response, paused := r.machine.response(q, model.EnsureRunning), r.paused(q)
	switch {
	case !q.Expires.IsZero() && time.Now().After(q.Expires):
		response.Phase = model.EnsureExpired
	case paused != nil:
		response.Phase, response.Error = model.EnsureFailed, paused.Error()
	case r.say(q, response):
		tasks.Pause(ctx, min(r.machine.RunTime, DefaultRunTime), nil)
		if q.run != nil {
			return r.ran(ctx, q)
		}
		return r.machine.executed(q)
	}

	return response
}

// next removes and returns the oldest waiting request, nil for none.
func (r *Requests) next() *request {
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
func (r *Requests) say(q *request, response model.EnsureResponse) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.last.Phase.Final() {
		return false
	}
	q.say(response)

	return true
}

func (q *request) say(response model.EnsureResponse) {
	q.last = response
	for _, respond := range q.respond {
		respond(response)
	}
	if response.Phase.Final() {
		q.respond = nil
	}
}

func (m *machine) executed(q *request) model.EnsureResponse {
	run := m.begin("ensure", 0, "", model.CauseEnsure)
	run.Noop, run.CorrelationID = q.Noop, q.ID
	t := m.transaction(run, &Resource{Ref: model.Ref{Type: q.Type, Name: q.name}, Ensure: model.EnsurePresent, Properties: q.Properties})
	t.Duration = min(m.RunTime, DefaultRunTime)
	change := model.Change{Action: "store", Message: "Would have changed it"}
	if q.Type == "exec" {
		change = model.Change{Action: "execute", Message: "Would have executed"}
	}
	response := m.response(q, model.EnsureDone)
	response.State = t
	switch {
	case q.Noop:
		t.Changed, t.Changes = true, []model.Change{change}
	case m.Error != "":
		response.Phase, t.Failed, t.Errors = model.EnsureFailed, true, []string{m.Error}
	default:
		t.Changed, t.Changes = !q.Check, []model.Change{change.Done()}
	}
	if q.Type == "exec" && !q.Noop {
		t.Outputs = map[string]any{"stdout": "simulated: " + q.name + "\n", "stderr": m.Error, "exit_code": len(t.Errors)}
	}

	return response
}

func (r *Requests) ran(ctx context.Context, q *request) model.EnsureResponse {
	response, known := r.machine.response(q, model.EnsureDone), map[string]bool{}
	for _, key := range r.runs.assigned.keys() {
		_, name, _ := model.SplitKey(key)
		known[name] = true
		if len(q.run.Manifests) > 0 && !slices.Contains(q.run.Manifests, name) {
			continue
		}
		if run := r.runs.perform(ctx, key, model.CauseRequest, q, r.runs.observes()); run != nil {
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

// cancel cancels a request that has not started, like an agent. It remembers an unknown id, so that a later
// request is cancelled.
func (r *Requests) cancel(data []byte, isCommand bool, respond func(model.EnsureResponse)) {
	c, err := model.DecodeCancelRequest(data)
	if err != nil {
		respond(model.EnsureResponse{Protocol: model.ProtocolEnsureResponse, Node: r.machine.Node, ID: c.Request, Error: err.Error()})
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	q, isKnown := r.known[c.Request]
	switch {
	case !isKnown:
		q = &request{EnsureRequest: model.EnsureRequest{ID: c.Request}}
		r.remember(q)
	case q.last.Phase != model.EnsureAcknowledged:
		respond(q.last)
		q.respond = append(q.respond, respond)
		return
	}
	response := r.machine.response(q, model.EnsureCancelled)
	response.Error = c.String()
	q.say(response)
	r.waiting = slices.DeleteFunc(r.waiting, func(w *request) bool { return w == q })
	if isKnown || isCommand {
		r.report.Ensure(response)
	}
	response.Unknown = !isKnown
	respond(response)
}

// Previews answers preview requests of a node.
type Previews struct{ assigned *assigned }

// Preview answers a preview request immediately, with any signature: the changes from the assigned manifest
// of the name. A failing node would fail.
func (p Previews) Preview(ctx context.Context, _ *model.Sender, data []byte, respond func(model.EnsureResponse)) {
	var req model.PreviewRequest
	content, err := signed.Content(data)
	if err == nil {
		err = json.Unmarshal(content, &req)
	}
	response := model.EnsureResponse{Protocol: model.ProtocolPreviewResponse, ID: req.ID, Phase: model.EnsureFailed, Node: p.assigned.machine.Node}
	var after *Manifest
	if err == nil {
		after, err = p.assigned.load(ctx, model.Entry{Key: model.Key(model.GroupFamily(model.GroupAll), req.Name), Name: req.Name, Value: []byte(req.Value)})
	}
	if err != nil {
		response.Error = err.Error()
		respond(response)
		return
	}
	response.Plan = p.plan(req.Name, after)
	if response.Plan.OK() {
		response.Phase = model.EnsureDone
	}
	respond(response)
}

func (p Previews) plan(name string, after *Manifest) *model.Plan {
	m := p.assigned.machine
	out, failing := &model.Plan{}, m.failing(after)
	for i, changes := range p.assigned.compared.between(p.assigned.inForce(name), after) {
		r := &after.Resources[i]
		t := model.Transaction{
			Protocol: model.ProtocolTransaction, Type: r.Ref.Type, Name: r.Ref.Name, Alias: r.Alias, RequestedEnsure: r.Ensure, Source: r.Source, Noop: true,
		}
		switch {
		case i == failing:
			t.Failed, t.Errors = true, []string{m.errorOf(r.Ref.Type)}
		case changes != nil:
			t.Changed, t.Changes = true, slices.Clone(changes)
		}
		if out.Counts.Add(&t); t.Failed || t.Changed {
			out.Transactions = append(out.Transactions, t)
		}
	}
	out.Counts.Unique = len(after.Resources)
	b, _ := json.Marshal(out) // what is received again
	out.Digest = model.DigestOf(b)

	return out
}
