package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/ksuid"
	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/reconcile"
	"github.com/musterfleet/muster/resources/resource"
)

// errNotRecorded is a request that was not taken, but may be when it comes again.
var errNotRecorded = errors.New("the request cannot be recorded, without which it could be executed twice")

// errNotKept is a request that a restart lost.
var errNotKept = errors.New("the agent was ended before it began, and what is sensitive is not kept: send it again")

// Ensure takes an ensure request, as JSON or YAML, and tells respond what
// becomes of it: at once that it is acknowledged, or why it is not taken, and
// later the phases until the final one. respond is called one response at a
// time, and must not block. A request whose id came before is not executed
// again: respond gets the recorded response and those still to come. What was
// acknowledged is executed also after a restart, unless it has expired or is
// sensitive. One with an id that is not taken is told to the stream too.
func (a *Agent) Ensure(ctx context.Context, data []byte, respond func(model.EnsureResponse)) {
	if response, err := a.take(ctx, &ask{}, data, respond); err != nil {
		respond(a.notTaken(response, err))
	}
}

// Command takes an ensure request that waited for the node under an id, which
// is that of the request where it has none. Its responses go to the stream. The
// error is that it could not be recorded: then it may be taken when it comes
// again.
func (a *Agent) Command(ctx context.Context, id string, data []byte) error {
	if id = cmp.Or(idOf(data), id); id == "" {
		a.log.ErrorContext(ctx, "a command without an id is refused, it could be executed twice")
		return nil
	}
	response, err := a.take(ctx, &ask{ID: id, Command: true}, data, func(model.EnsureResponse) {})
	if err != nil && !errors.Is(err, errNotRecorded) {
		a.notTaken(response, err)
		return nil
	}

	return err
}

// notTaken gives the response to a request that is not taken, and tells the
// stream where that could be found by an id.
func (a *Agent) notTaken(response model.EnsureResponse, err error) model.EnsureResponse {
	response.Phase, response.Error = model.EnsureFailed, err.Error()
	if response.ID != "" {
		a.reportEnsure(response)
		a.sync()
	}

	return response
}

// idOf gives the id of a request that may be wrong otherwise, empty when there is
// none to be found.
func idOf(data []byte) string {
	var r struct {
		ID string `yaml:"id"`
	}
	_ = yaml.Unmarshal(data, &r) // what is wrong is told by who parses it

	return r.ID
}

// take takes a request in, under the id of q where it has none of its own. With
// an error, the response is to be completed by it.
func (a *Agent) take(ctx context.Context, q *ask, data []byte, respond func(model.EnsureResponse)) (model.EnsureResponse, error) {
	req, properties, err := manifest.ParseRequest("request", data)
	if err != nil {
		return a.response(cmp.Or(idOf(data), q.ID)), err
	}
	req.ID = cmp.Or(req.ID, q.ID)
	if req.ID == "" {
		req.ID = ksuid.New().String()
	}
	response := a.response(req.ID)
	response.Phase = model.EnsureAcknowledged
	q.ID, q.At, q.Response, q.request = req.ID, time.Now().UTC(), response, asJSON(req)
	// The time it expires at is that of the sending, which may be repeated.
	req.Expires = time.Time{}
	if a.opts.Loader.Sensitive(req.Type, properties) {
		req.Properties = nil
	} else {
		q.Request = q.request
	}
	q.Sum = model.DigestOf(asJSON(req))
	isNew, err := a.asks.begin(ctx, q, respond)
	if errors.Is(err, errOtherRequest) {
		return response, err
	}
	if err != nil {
		return response, fmt.Errorf("%w: %w", errNotRecorded, err)
	}
	if isNew {
		a.queue.request(q)
	}

	return response, nil
}

func (a *Agent) response(id string) model.EnsureResponse {
	return model.EnsureResponse{Protocol: model.ProtocolEnsureResponse, Node: a.opts.Config.Node, ID: id}
}

// asJSON encodes a request that was decoded before.
func asJSON(req model.EnsureRequest) json.RawMessage {
	b, err := json.Marshal(req)
	if err != nil {
		b = json.RawMessage("null") // read back as a request that is refused
	}

	return b
}

// recallAsks queues what an earlier process acknowledged and did not begin; what
// was not kept can be sent again, or waits in the stream. What had begun may have
// been done: that is said, and not done again.
func (a *Agent) recallAsks(ctx context.Context) {
	for _, q := range a.asks.unfinished() {
		response := a.response(q.ID)
		switch {
		case q.Response.Phase != model.EnsureAcknowledged:
			response.Phase, response.Error = model.EnsureFailed, "the agent was ended while it ran, and it may have been done: it is not executed again"
			a.tellAsker(ctx, q, response)
		case q.request != nil:
			a.queue.request(q)
		case q.Command:
			a.asks.forget(q)
		default:
			a.notTaken(response, errNotKept)
			a.asks.forget(q)
		}
	}
}

// tellAsker records a response, and hands it to whoever asked. A final one goes
// to the stream too.
func (a *Agent) tellAsker(ctx context.Context, q *ask, response model.EnsureResponse) {
	askers, err := a.asks.record(ctx, q, response)
	if err != nil {
		a.log.ErrorContext(ctx, "the response to a request cannot be recorded", "id", q.ID, "error", err)
	}
	if response.Phase.Final() {
		a.reportEnsure(response)
		a.sync()
	}
	for _, respond := range askers {
		respond(response)
	}
}

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
}

// answer executes a request.
func (r *runner) answer(ctx, hard context.Context, q *ask) {
	response := r.response(q.ID)
	req, properties, err := manifest.ParseRequest("request", q.request)
	if err == nil && !req.Expires.IsZero() && !time.Now().Before(req.Expires) {
		response.Phase = model.EnsureExpired
		r.tellAsker(hard, q, response)
		return
	}
	began := false
	if err == nil {
		err = tasks.Guard(r.log, "executing request "+q.ID, func() (err error) {
			response.State, began, err = r.execute(ctx, hard, q, req, properties)
			return err
		})
	}
	switch {
	case err != nil && !began && ctx.Err() != nil:
		return // it stays acknowledged, and is executed after the restart
	case err != nil:
		response.Phase, response.Error = model.EnsureFailed, err.Error()
	case !response.State.OK():
		response.Phase = model.EnsureFailed
	default:
		response.Phase = model.EnsureDone
	}
	r.tellAsker(hard, q, response)
}

// execute runs the one resource of a request.
func (r *runner) execute(ctx, hard context.Context, q *ask, req model.EnsureRequest, properties resource.Value) (t *model.Transaction, began bool, err error) {
	resolved, err := r.opts.Loader.ResolveOne(ctx, req.Type, properties, r.inputs(r.factsNow()))
	if err != nil {
		return nil, false, err
	}
	built, err := graph.Build(resolved.Resources, nil)
	if err != nil {
		return nil, false, err
	}
	asked := resolved.Resources[len(resolved.Resources)-1].Ref()
	id := ksuid.New().String()
	o := r.runOptions(ctx, hard, id, req.Noop)
	o.Manifest, o.Cause, o.CorrelationID, o.Full = "ensure", model.CauseEnsure, q.ID, true
	o.Secrets, o.Command = resolved.Secrets, "muster agent"
	o.OnTransaction = func(done *model.Transaction) {
		r.logTransaction(ctx, done)
		if done.Ref() == asked {
			t = done
		}
	}
	o.Locked = func(context.Context, *reconcile.Options) (*graph.Graph, error) {
		running := r.response(q.ID)
		running.Phase = model.EnsureRunning
		began = true
		r.tellAsker(hard, q, running)
		return built, nil
	}
	summary, err := reconcile.Run(ctx, built, o)
	if summary != nil && !req.Noop && summary.Outcome() != model.OutcomeStable {
		r.changes++
	}
	if err == nil && t == nil {
		err = fmt.Errorf("nothing was run: %v", summary.Errors)
	}

	return t, began, err
}

// inputs are those of a request, which has no directory that a manifest could be beside.
func (a *Agent) inputs(facts model.Facts) manifest.Inputs {
	return manifest.Inputs{Facts: facts, MaxDepth: a.Config().MaxDepth}
}

// Status reads the state of one resource, given like an ensure request, and
// changes nothing.
func (a *Agent) Status(ctx context.Context, data []byte) (json.RawMessage, error) {
	req, properties, err := manifest.ParseRequest("request", data)
	if err != nil {
		return nil, err
	}
	facts, err := a.Facts(ctx)
	if err != nil {
		return nil, err
	}
	resolved, err := a.opts.Loader.ResolveQuestion(ctx, req.Type, properties, a.inputs(facts))
	if err != nil {
		return nil, err
	}
	env := resource.Env{Host: a.opts.Host, Facts: facts, Log: a.log, Scope: resource.Scope{Noop: true, Origin: a.origin(nil)}}
	found, err := engine.Status(ctx, env, resolved.Resources)
	if err != nil {
		return nil, err
	}

	return json.Marshal(found)
}
