// Package requests answers the requests of operators to one node. Service accepts ensure and run
// requests, executes each once, also after a restart, and reads the state of single resources.
// Previews answers previews of assignments.
package requests

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/model/telemetry"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// Loader resolves the resource of a request; *manifest.Loader implements it.
type Loader interface {
	ResolveOne(ctx context.Context, typ string, properties document.Value, in manifest.Inputs) (*manifest.Resolved, error)
	Sensitive(typ string, properties document.Value) bool
}

// Run describes the run of one request.
type Run struct {
	ID    string
	Graph *plan.Graph
	Noop  bool
	// Check marks an exec request that only reads.
	Check   bool
	Secrets []model.Secret
	// MayBegin returns an error if the run must not begin any more. The runner calls it again after
	// each wait. The runner calls Began once, when nothing delays the run any more; if Began returns
	// an error, the run must not begin.
	MayBegin      func() error
	Began         func() error
	OnTransaction func(*model.Transaction)
}

// Options configure a Service.
type Options struct {
	Node   string
	Host   *host.Host
	Dir    string
	Loader Loader
	// Open opens a message, which may be signed. It returns an error if the request must never be
	// executed, together with the content that it could read.
	Open func(ctx context.Context, data []byte, action signed.Action) (desired.Opened, error)
	// Demands reports whether requests must be signed.
	Demands func() bool
	// Facts waits for the facts of the node; FactsNow does not wait.
	Facts    func(context.Context) (model.Facts, error)
	FactsNow func() model.Facts
	// Inputs returns the inputs for resolving a request. A request has no directory.
	Inputs func(model.Facts) manifest.Inputs
	// Env returns the environment for reading the state of a resource.
	Env func(model.Facts) resource.Env
	// Expired returns an error once a request has expired.
	Expired func(at time.Time) error
	// Paused returns the reason why the node is paused, or an empty text. A nil function means never
	// paused.
	Paused func() string
	// Report publishes a final response. Untrusted records why a signature was not accepted.
	Report    func(model.EnsureResponse)
	Untrusted func(why string)
	// Wake is called when a request is ready for Next or NextRun. It must not block.
	Wake func()
	Log  *slog.Logger
}

// Service accepts and executes requests. Its methods are safe for concurrent use. Create it with Open.
type Service struct {
	o         Options
	store     *store
	refusals  *refusals
	recent    recentRefusals
	queue     *queue
	responder *responder
	early     *earlyCancels
	// accepting prevents a request from being accepted while its cancel is accepted.
	accepting sync.Mutex
	// rejected limits the log lines about rejected messages, which any publisher can cause.
	rejected *telemetry.RateLimitedLog
}

// Open reads the requests on disk and queues those that an earlier process accepted and did not begin.
func Open(ctx context.Context, o Options) (*Service, error) {
	store, err := openStore(o.Host, o.Dir, o.Log)
	if err != nil {
		return nil, err
	}
	s := &Service{o: o, store: store, early: openEarlyCancels(o.Host, o.Dir, o.Log), refusals: openRefusals(o.Host, o.Dir, o.Log), queue: &queue{wake: o.Wake}, rejected: &telemetry.RateLimitedLog{}}
	s.responder = &responder{node: o.Node, store: store, report: o.Report, log: o.Log, ended: map[string]uint64{}}
	s.recover(ctx)

	return s, nil
}

// Ensure accepts an ensure request, as JSON or YAML, and calls respond with each response: first that
// the request is acknowledged or why it is rejected, then each phase until the final one. Calls of
// respond do not overlap, and respond must not block. A request whose id is known is not executed
// again: respond receives the recorded response and the later ones. An acknowledged request is
// executed also after a restart, unless it expired or is sensitive. A rejected request with an id is
// also reported. Responses repeat from, the self-declared sender; nil means unknown.
//
// Ensure also accepts cancels: respond receives the latest response to the named request. A cancelled
// request is not executed; if it is being executed, it starts no further change. A cancel that arrives
// before its request is remembered.
func (s *Service) Ensure(ctx context.Context, from *model.Sender, data []byte, respond func(model.EnsureResponse)) {
	if isCancel(data) {
		_ = s.cancel(ctx, data, false, respond) // it responded to a rejected cancel
		return
	}
	s.receive(ctx, &request{Sender: from}, data, respond, s.responder.reject)
}

// Run accepts a run request, as Ensure accepts an ensure request; NextRun returns the accepted ones. A
// rejected run request is answered and counted, but not reported: a sender may send any number of
// them, and their reports would displace reports of other requests in the stream.
func (s *Service) Run(ctx context.Context, from *model.Sender, data []byte, respond func(model.EnsureResponse)) {
	s.receive(ctx, &request{Run: true, Sender: from}, data, respond, s.responder.refused)
}

// receive accepts or refuses a request. A message that was refused recently gets the same response
// again.
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

// Command accepts an ensure request or a cancel from the stream. A request without an id gets the
// given id. Its responses are reported. A rejection is reported once, although the stream delivers the
// request again at each start. If Command returns an error, the request may be accepted when it is
// delivered again.
func (s *Service) Command(ctx context.Context, from *model.Sender, id string, data []byte) error {
	if s.refusals.has(id, data) {
		return nil
	}
	if isCancel(data) {
		err := s.cancel(ctx, data, true, func(model.EnsureResponse) {})
		switch {
		case errors.Is(err, errCancelNotRecorded):
			return err
		case err != nil && !errors.Is(err, signed.ErrFuture):
			s.refusals.add(ctx, id, data)
		}
		return nil
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
	// The clock may be behind while the node starts.
	if !errors.Is(err, signed.ErrFuture) {
		s.refusals.add(ctx, id, data)
	}

	return nil
}

// Refuse reports once that a command of unknown content must not be executed.
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

// open accepts the request of a message, which may be signed. With an error, the returned response has
// no phase yet. A panic rejects only this message.
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
	parsed := parse(opened.Request, q.Run)
	q.ID = cmp.Or(parsed.ID, q.ID)
	// A known request may arrive late: it was accepted in time.
	if err == nil && !s.store.knows(q) {
		err = opened.Stale
	}
	// The stream delivers a command again at each start, also after the required signatures changed.
	if err != nil && q.Command && s.hasAccepted(q.ID, parsed) {
		return s.responder.response(q), nil
	}
	if err != nil {
		s.o.Untrusted(err.Error())
		return s.responder.response(q), err
	}
	// The signature does not cover the id of a queued message.
	if q.Command && q.ID == "" || opened.Signed && parsed.ID == "" {
		return s.responder.response(q), errNoID
	}

	return s.accept(ctx, q, parsed, respond)
}

// hasAccepted reports whether the request was accepted under this id with the same content.
func (s *Service) hasAccepted(id string, parsed content) bool {
	q := &request{ID: id}

	return s.fill(q, parsed) == nil && s.store.has(q)
}

// fill sets the fields of q from its content, and creates an id if it has none.
func (s *Service) fill(q *request, parsed content) error {
	if parsed.err != nil {
		return parsed.err
	}
	if q.ID = cmp.Or(parsed.ID, q.ID); q.ID == "" {
		q.ID = ksuid.New().String()
	}
	q.At, q.body = time.Now().UTC(), encode(parsed.document(q.ID, parsed.Expires))
	q.Response = s.responder.response(q)
	q.Response.Phase = model.EnsureAcknowledged
	if parsed.run == nil && s.o.Loader.Sensitive(parsed.Type, parsed.properties) {
		parsed.Properties = nil
	} else {
		q.Request, q.Of = q.body, parsed.ref()
	}
	// Sum excludes the expiry: a sender may repeat the request with a later one.
	q.Sum = model.DigestOf(encode(parsed.document(q.ID, time.Time{})))

	return nil
}

// accept stores and queues a request. With an error, the returned response has no phase yet.
func (s *Service) accept(ctx context.Context, q *request, parsed content, respond func(model.EnsureResponse)) (model.EnsureResponse, error) {
	if err := s.fill(q, parsed); err != nil {
		return s.responder.response(q), err
	}
	response := q.Response
	// A known request gets its recorded response, also while the node is paused.
	if err := s.paused(observes(parsed.EnsureRequest)); err != nil && !s.store.knows(q) {
		response.State = q.notDone(err.Error())
		return response, err
	}
	isNew, isCancelled, err := s.record(ctx, q, respond)
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

// recover queues the requests that an earlier process accepted and did not begin. A sensitive request
// is lost: its sender must send it again, or the stream delivers it again. A request that had begun
// may have been executed: it fails and is not executed again.
func (s *Service) recover(ctx context.Context) {
	for _, q := range s.store.unfinished() {
		response := s.responder.response(q)
		switch {
		case q.Response.Phase != model.EnsureAcknowledged:
			response.Phase, response.Error = model.EnsureFailed, "the agent stopped during the request, which may have been executed; it is not executed again"
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

// errNotRecorded rejects a request that cannot be stored. The sender may send it again.
var errNotRecorded = errors.New("the request cannot be stored, and without a record it could be executed twice")

// errPaused rejects a request because the node is paused.
var errPaused = errors.New("refused, the node changes nothing now")

// errTooManyRuns rejects a run request because maxOpenRuns run requests are open.
var errTooManyRuns = errors.New("the node has too many open run requests; try again later")

// maxOpenRuns limits the run requests that wait or are executed: a sender may send them at any rate.
const maxOpenRuns = 100

// errOtherRequest rejects a request that reuses the id of a different request.
var errOtherRequest = errors.New("its id was used for another request; use a new id")

// errNoID rejects a request without an id that could be executed twice.
var errNoID = errors.New("a request that is queued or signed needs an id, or it could be executed twice")

// errNotKept fails a sensitive request that was lost in a restart.
var errNotKept = errors.New("the agent stopped before the request began, and sensitive requests are not stored; send it again")

// request is one request from its acceptance to its final response.
type request struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
	// Sum identifies the content of the request, also after Request is cleared. The sum of a sensitive
	// request excludes its properties, which could be guessed from it.
	Sum string `json:"sum"`
	// Request holds the content until the execution begins. It is empty for a sensitive request.
	Request json.RawMessage `json:"request,omitempty"`
	// Run marks a run request; otherwise the request is about one resource.
	Run bool `json:"run,omitempty"`
	// Command marks a request from the stream. The stream delivers it again after a restart.
	Command bool `json:"command,omitempty"`
	// Of names the resource, as far as it is known before the execution; it outlives Request. It is
	// nil for run requests and sensitive requests.
	Of       *model.Ref           `json:"of,omitempty"`
	Sender   *model.Sender        `json:"sender,omitempty"`
	Response model.EnsureResponse `json:"response"`

	// body holds the content until the execution begins, also of a sensitive request.
	body    json.RawMessage
	respond []func(model.EnsureResponse)
	// cancelled is the reason why the request must not be executed. stop and kill end its execution;
	// they are nil while it is not executed. The mutex of the queue guards all three.
	cancelled  error
	stop, kill context.CancelCauseFunc
}

// content is the decoded request of a message. An invalid request has err and at most an id.
type content struct {
	model.EnsureRequest
	properties document.Value
	// run is set for a run request. The embedded EnsureRequest repeats its id, expiry and noop.
	run *model.RunRequest
	err error
}

func parse(data []byte, run bool) content {
	if run {
		r, err := model.DecodeRunRequest(data)
		return content{EnsureRequest: model.EnsureRequest{ID: r.ID, Expires: r.Expires, Noop: r.Noop}, run: &r, err: err}
	}
	req, properties, err := manifest.ParseRequest("request", data)

	return content{EnsureRequest: req, properties: properties, err: err}
}

func (c content) document(id string, expires time.Time) any {
	if c.run != nil {
		r := *c.run
		r.ID, r.Expires = id, expires
		return r
	}
	r := c.EnsureRequest
	r.ID, r.Expires = id, expires

	return r
}

func (c content) ref() *model.Ref {
	if c.run != nil {
		return nil
	}
	name, _ := c.properties.Get("name")
	text, _ := name.Plain().(string)

	return &model.Ref{Type: c.Type, Name: text}
}

// encode encodes a request that was decoded before.
func encode(req any) json.RawMessage {
	b, err := json.Marshal(req)
	if err != nil {
		b = json.RawMessage("null") // read back as an invalid request
	}

	return b
}

// notDone returns a failed transaction for a request that was not executed. It returns nil if the
// resource is unknown or sensitive.
func (q *request) notDone(why string) *model.Transaction {
	if q.Of == nil {
		return nil
	}

	return &model.Transaction{
		Protocol: model.ProtocolTransaction, EventID: ksuid.New().String(), Timestamp: time.Now().UTC(), Type: q.Of.Type, Name: q.Of.Name, Failed: true, Errors: []string{why},
	}
}
