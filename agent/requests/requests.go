package requests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/model/telemetry"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// Loader makes a resource of a request; *manifest.Loader is one.
type Loader interface {
	ResolveOne(ctx context.Context, typ string, properties document.Value, in manifest.Inputs) (*manifest.Resolved, error)
	Sensitive(typ string, properties document.Value) bool
}

// Run is what the one run of a request is made from.
type Run struct {
	ID    string
	Graph *graph.Graph
	Noop  bool
	// Check marks a command that only reads.
	Check   bool
	Secrets []model.Secret
	// MayBegin returns why the run must not begin any more. It is called again whenever the
	// run has waited. Began is called once nothing holds it up any more; its error is that it
	// must not begin after all.
	MayBegin      func() error
	Began         func() error
	OnTransaction func(*model.Transaction)
}

// Opened is the request of a message.
type Opened struct {
	Request []byte
	// Signed is that it came in an envelope, Stale why it must not be executed unless
	// it was accepted before.
	Signed bool
	Stale  error
}

// Options are what a Service is made from.
type Options struct {
	Node string
	Host *host.Host
	// Dir keeps the requests of the last day.
	Dir    string
	Loader Loader
	// Open opens a message, which may be signed. The error is why its request is never
	// executed; what could be opened is returned with it.
	Open func(ctx context.Context, data []byte, action signed.Action) (Opened, error)
	// Facts waits for the facts of the node; FactsNow does not.
	Facts    func(context.Context) (model.Facts, error)
	FactsNow func() model.Facts
	// Inputs are those of a request, which has no directory of its own.
	Inputs func(model.Facts) manifest.Inputs
	// Env is that of a resource which is only read.
	Env func(model.Facts) resource.Env
	// Expired returns an error once a request has expired.
	Expired func(at time.Time) error
	// Paused describes why the node changes nothing now, empty where it may; nil is always.
	Paused func() string
	// Report reports a final response, Untrusted why a request was not accepted that is
	// not signed as it must be.
	Report    func(model.EnsureResponse)
	Untrusted func(why string)
	// Wake is called when a request waits for Next. It must not block.
	Wake func()
	Log  *slog.Logger
}

// Service accepts and executes requests. Its methods may be called from several
// goroutines. Make it with Open.
type Service struct {
	o         Options
	store     *store
	refusals  *refusals
	recent    recentRefusals
	queue     *queue
	responder *responder
	canceller *canceller
	// rejected logs what is rejected, which whoever publishes causes.
	rejected *telemetry.RateLimitedLog
}

// Open reads the requests on disk, and queues those that an earlier process
// accepted and did not begin.
func Open(ctx context.Context, o Options) (*Service, error) {
	store, err := openStore(o.Host, o.Dir, o.Log)
	if err != nil {
		return nil, err
	}
	s := &Service{o: o, store: store, refusals: openRefusals(o.Host, o.Dir, o.Log), queue: &queue{wake: o.Wake}, rejected: &telemetry.RateLimitedLog{}}
	s.responder = &responder{node: o.Node, store: store, report: o.Report, log: o.Log}
	s.canceller = &canceller{
		open: o.Open, untrusted: o.Untrusted, expired: o.Expired, report: o.Report, log: o.Log, rejected: s.rejected,
		store: store, early: openEarlyCancels(o.Host, o.Dir, o.Log), queue: s.queue, responder: s.responder,
	}
	s.recover(ctx)

	return s, nil
}

// Ensure accepts an ensure request, as JSON or YAML, and calls respond with each
// of its responses: at once that it is acknowledged, or why it is rejected, and
// later the phases until the final one. respond is called once at a time, and
// must not block. A request whose id came before is not executed again: respond
// gets the recorded response and those still to come. What was acknowledged is
// executed also after a restart, unless it has expired or is sensitive. A
// rejected request that has an id is reported too. Responses repeat from, which is who sent it as they
// said, nil where they did not: nothing depends on it.
//
// A cancel comes the same way: respond gets the last response to the request that it names. One
// that has not begun is not executed, one that is being executed begins nothing more; a cancel
// that comes first is remembered.
func (s *Service) Ensure(ctx context.Context, from *model.Sender, data []byte, respond func(model.EnsureResponse)) {
	if isCancel(data) {
		_ = s.canceller.cancel(ctx, data, false, respond) // that it is rejected was said
		return
	}
	s.receive(ctx, &request{Sender: from}, data, respond, s.responder.reject)
}

// Run accepts a run request, as Ensure does an ensure request; what is run comes of NextRun. A rejected one is
// answered and counted, and not reported: anybody who may send it can send any number, which would take the place
// of what the stream has of other requests.
func (s *Service) Run(ctx context.Context, from *model.Sender, data []byte, respond func(model.EnsureResponse)) {
	s.receive(ctx, &request{Run: true, Sender: from}, data, respond, s.responder.refused)
}

// receive accepts a request, or refuses it; one that was refused lately gets the same response.
func (s *Service) receive(ctx context.Context, q *request, data []byte, respond func(model.EnsureResponse), refuse func(model.EnsureResponse, error) model.EnsureResponse) {
	if before, found := s.recent.get(time.Now(), data); found {
		respond(before)
		return
	}
	response, err := s.open(ctx, q, data, respond)
	if err == nil {
		return
	}
	response = refuse(response, err)
	s.recent.add(time.Now(), data, response)
	respond(response)
}

// Command accepts an ensure request, or a cancel, that waited for the node under an id, which
// is that of the request where it has none. Its responses are reported, also that it
// is rejected: that once, although it comes again at each start. With an error the
// request may be accepted when it comes again.
func (s *Service) Command(ctx context.Context, from *model.Sender, id string, data []byte) error {
	if s.refusals.has(id, data) {
		return nil
	}
	if isCancel(data) {
		return s.cancelCommand(ctx, id, data)
	}
	response, err := s.open(ctx, &request{ID: id, Command: true, Sender: from}, data, func(model.EnsureResponse) {})
	switch {
	case err == nil, errors.Is(err, errNotRecorded):
		return err
	case errors.Is(err, errNoID):
		s.rejected.Log(ctx, s.o.Log, slog.LevelError, "command rejected: it has no id and could be executed twice")
	default:
		s.responder.reject(response, err)
	}
	// The clock of a node that starts may be behind.
	if !errors.Is(err, signed.ErrFuture) {
		s.refusals.add(ctx, id, data)
	}

	return nil
}

// cancelCommand accepts a cancel that waited in the stream; a rejected one is looked at once.
func (s *Service) cancelCommand(ctx context.Context, id string, data []byte) error {
	err := s.canceller.cancel(ctx, data, true, func(model.EnsureResponse) {})
	switch {
	case errors.Is(err, errCancelNotRecorded):
		return err
	case err != nil && !errors.Is(err, signed.ErrFuture):
		s.refusals.add(ctx, id, data)
	}

	return nil
}

// Refuse reports a command that must not be executed and whose content is not known,
// once.
func (s *Service) Refuse(ctx context.Context, id string, why error) {
	if s.refusals.has(id, nil) {
		return
	}
	s.rejected.Log(ctx, s.o.Log, slog.LevelError, "command rejected", "id", id, "error", why)
	if model.IsRequestID(id) {
		s.responder.reject(s.responder.response(&request{ID: id}), why)
		s.refusals.add(ctx, id, nil)
	}
}

// open accepts the request of a message, which may be signed. With an error, the
// response still lacks its phase. A panic ends that message alone.
func (s *Service) open(ctx context.Context, q *request, data []byte, respond func(model.EnsureResponse)) (response model.EnsureResponse, err error) {
	response = s.responder.response(q)
	err = tasks.Guard(s.o.Log, "accepting a request", func() (err error) {
		response, err = s.judge(ctx, q, data, respond)
		return err
	})

	return response, err
}

func (s *Service) judge(ctx context.Context, q *request, data []byte, respond func(model.EnsureResponse)) (model.EnsureResponse, error) {
	action := signed.Ensure
	if q.Run {
		action = signed.Run
	}
	opened, err := s.o.Open(ctx, data, action)
	asked := parse(opened.Request, q.Run)
	q.ID = cmp.Or(asked.ID, q.ID)
	// One that comes again may be late: it was accepted in time.
	if err == nil && !s.store.knows(q) {
		err = opened.Stale
	}
	// What waits in the stream comes again at each start, also when other signatures are
	// demanded than when it was accepted.
	if err != nil && q.Command && s.hasAccepted(q.ID, asked) {
		return s.responder.response(q), nil
	}
	if err != nil {
		s.o.Untrusted(err.Error())
		return s.responder.response(q), err
	}
	// The id of a queued message is not signed.
	if q.Command && q.ID == "" || opened.Signed && asked.ID == "" {
		return s.responder.response(q), errNoID
	}

	return s.accept(ctx, q, asked, respond)
}

// hasAccepted reports whether the same request was accepted under its id.
func (s *Service) hasAccepted(id string, asked content) bool {
	q := &request{ID: id}

	return s.fill(q, asked) == nil && s.store.has(q)
}

// fill sets what a request is about, and makes an id for one without.
func (s *Service) fill(q *request, asked content) error {
	if asked.err != nil {
		return asked.err
	}
	if q.ID = cmp.Or(asked.ID, q.ID); q.ID == "" {
		q.ID = ksuid.New().String()
	}
	q.At, q.body = time.Now().UTC(), encode(asked.document(q.ID, asked.Expires))
	q.Response = s.responder.response(q)
	q.Response.Phase = model.EnsureAcknowledged
	if asked.run == nil && s.o.Loader.Sensitive(asked.Type, asked.properties) {
		asked.Properties = nil
	} else {
		q.Request, q.Of = q.body, asked.ref()
	}
	// When it expires counts from its sending, which may be repeated.
	q.Sum = model.DigestOf(encode(asked.document(q.ID, time.Time{})))

	return nil
}

// accept records and queues a request. With an error, the response still lacks its
// phase.
func (s *Service) accept(ctx context.Context, q *request, asked content, respond func(model.EnsureResponse)) (model.EnsureResponse, error) {
	if err := s.fill(q, asked); err != nil {
		return s.responder.response(q), err
	}
	response := q.Response
	// One that comes again has its response.
	if err := s.paused(observes(asked.EnsureRequest)); err != nil && !s.store.knows(q) {
		response.State = q.notDone(err.Error())
		return response, err
	}
	isNew, isCancelled, err := s.canceller.accept(ctx, q, respond)
	if errors.Is(err, errOtherRequest) || errors.Is(err, errTooManyRuns) {
		return response, err
	}
	if err != nil {
		return response, fmt.Errorf("%w: %w", errNotRecorded, err)
	}
	if isNew && !isCancelled {
		s.queue.add(q)
	}

	return response, nil
}

// observes reports whether a request changes nothing: it is a dry run, or a command that only reads by its Check. A check
// of another type is no promise: that type would change the machine.
func observes(r model.EnsureRequest) bool { return r.Noop || r.Check && r.Type == "exec" }

// paused returns why the node is paused and does not execute a request, nil if it does. A paused node executes requests
// that only observe.
func (s *Service) paused(observes bool) error {
	if observes || s.o.Paused == nil {
		return nil
	}
	if why := s.o.Paused(); why != "" {
		return fmt.Errorf("%w: %s", errPaused, why)
	}

	return nil
}

// recover queues what an earlier process accepted and did not begin; what was not
// kept can be sent again, or waits in the stream. What had begun may have been
// done: it fails, and is not done again.
func (s *Service) recover(ctx context.Context) {
	for _, q := range s.store.unfinished(ctx) {
		response := s.responder.response(q)
		switch {
		case q.Response.Phase != model.EnsureAcknowledged:
			response.Phase, response.Error = model.EnsureFailed, "the agent was ended while it ran, and it may have been done: it is not executed again"
			response.State = q.notDone(response.Error)
			s.responder.respond(ctx, q, response)
		case q.body != nil:
			s.queue.add(q)
		case q.Command:
			s.store.forget(q)
		default:
			s.responder.reject(response, errNotKept)
			s.store.forget(q)
		}
	}
}
