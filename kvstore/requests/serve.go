package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/telemetry"
)

// NodeHeader names the answering node. If the node has no answer, micro.ErrorHeader has the reason.
const NodeHeader = "Muster-Node"

// Answer returns the answer to a request, which is encoded as JSON.
type Answer func(ctx context.Context, request []byte) (any, error)

// Accept accepts a request. It calls respond at once with an acknowledgement or a rejection, and later
// with the result. It must return soon, because requests of one subject arrive one after the other.
// respond does not block. Any goroutine may call it until Serve returns. Later responses are dropped,
// and so are responses to a request without a reply subject. from is the self-declared sender, or nil.
type Accept func(ctx context.Context, from *model.Sender, request []byte, respond func(model.EnsureResponse))

// ServeOptions configure Serve. Verbs without a handler are not served.
type ServeOptions struct {
	Node   string
	Groups []string
	// Version is the version of muster for service discovery.
	Version string
	// Ensure, Run and Preview accept requests with several responses.
	Ensure, Run, Preview Accept
	// Status, Facts and Ping answer at once.
	Status, Facts, Ping Answer
	// Ready, if set, is called when the server has all subscriptions. From then on no request is
	// missed.
	Ready func()
	// Log receives messages for administrators.
	Log *slog.Logger
}

// ServeAll serves like Serve and handles queued requests like Commands. It ends when ctx ends, when one of them fails, or
// when changed receives, for example because the node has other groups.
func (s Client) ServeAll(ctx context.Context, changed <-chan struct{}, o ServeOptions, handle func(context.Context, Command) error) error {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 2)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() { ended <- s.Serve(ctx, o) })
	all.Go(func() { ended <- s.Commands(ctx, CommandOptions{Node: o.Node, Groups: o.Groups, Log: o.Log}, handle) })
	select {
	case err := <-ended:
		return err
	case <-changed:
		return nil
	}
}

// Serve answers requests to the node, its groups and all nodes until the context ends. Then it waits
// for running handlers. It uses no queue group, so every node of a group answers. Serve returns nil
// when the context ends. Otherwise the error wraps model.ErrInvalidName or comes from the connection.
func (s Client) Serve(ctx context.Context, o ServeOptions) error {
	if err := model.CheckNode(o.Node, o.Groups); err != nil {
		return err
	}
	closed := s.store.Conn.StatusChanged(nats.CLOSED)
	defer s.store.Conn.RemoveStatusListener(closed)
	v := &server{store: s.store, o: o}
	service, err := micro.AddService(s.store.Conn, micro.Config{
		Name:               s.store.Names.Prefix,
		Version:            semantic(o.Version),
		Description:        "muster agent",
		Metadata:           map[string]string{"node": o.Node, "version": o.Version},
		QueueGroupDisabled: true,
	})
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	err = v.offer(ctx, service)
	if err == nil {
		err = v.ready(ctx)
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case <-closed:
			err = nats.ErrConnectionClosed
		}
	}
	err = errors.Join(err, service.Stop())
	v.stop()
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}

	return nil
}

type server struct {
	store *kvstore.Store
	o     ServeOptions
	// rejected limits the log of rejected requests, because any user may send them.
	rejected telemetry.RateLimitedLog

	mu      sync.Mutex
	stopped bool
	running sync.WaitGroup
}

// offer adds an endpoint per verb and family. It adds the pings last, so a node that answers a ping
// answers every verb.
func (v *server) offer(ctx context.Context, service micro.Service) error {
	handlers := v.handlers()
	for _, verb := range kvstore.Verbs() {
		handle := handlers[verb]
		if handle == nil {
			continue
		}
		for _, family := range model.Families(v.o.Node, v.o.Groups) {
			name := verb + "-" + strings.ReplaceAll(family, ".", "-")
			handler := micro.HandlerFunc(func(r micro.Request) { v.handle(ctx, r, handle) })
			if err := service.AddEndpoint(name, handler, micro.WithEndpointSubject(v.store.Names.Request(verb, family))); err != nil {
				return fmt.Errorf("endpoint %s: %w", name, err)
			}
		}
	}

	return nil
}

// ready calls Ready when the server has all subscriptions.
func (v *server) ready(ctx context.Context) error {
	if v.o.Ready == nil {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, kvstore.RequestTimeout)
	defer cancel()
	if err := v.store.Conn.FlushWithContext(waiting); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	v.o.Ready()

	return nil
}

func (v *server) handlers() map[string]func(context.Context, micro.Request) {
	all := map[string]func(context.Context, micro.Request){}
	for verb, accept := range map[string]Accept{kvstore.VerbEnsure: v.o.Ensure, kvstore.VerbRun: v.o.Run, kvstore.VerbPreview: v.o.Preview} {
		if accept != nil {
			all[verb] = func(ctx context.Context, r micro.Request) { v.accept(ctx, r, accept) }
		}
	}
	for verb, answer := range map[string]Answer{kvstore.VerbStatus: v.o.Status, kvstore.VerbFacts: v.o.Facts, kvstore.VerbPing: v.o.Ping} {
		if answer != nil {
			all[verb] = func(ctx context.Context, r micro.Request) { v.answer(ctx, r, answer) }
		}
	}

	return all
}

// handle calls a handler unless the service has stopped, the server sent the message from a stream, or
// the reply subject is not allowed.
func (v *server) handle(ctx context.Context, r micro.Request, handle func(context.Context, micro.Request)) {
	if isDelivery(r.Reply(), nats.Header(r.Headers())) {
		v.rejected.Log(ctx, v.o.Log, slog.LevelWarn, "request delivered from a stream rejected", "node", v.o.Node, "subject", r.Subject())
		return
	}
	if !v.store.Names.MayAnswer(r.Reply()) {
		v.rejected.Log(ctx, v.o.Log, slog.LevelWarn, "request rejected: its reply subject is not one on which nodes answer", "node", v.o.Node, "subject", r.Subject(), "reply", r.Reply())
		return
	}
	v.mu.Lock()
	if v.stopped {
		v.mu.Unlock()
		return
	}
	v.running.Add(1)
	v.mu.Unlock()
	defer v.running.Done()
	handle(ctx, r)
}

// stop waits for running handlers and prevents new calls.
func (v *server) stop() {
	v.mu.Lock()
	v.stopped = true
	v.mu.Unlock()
	v.running.Wait()
}

func (v *server) accept(ctx context.Context, r micro.Request, accept Accept) {
	reply := r.Reply()
	accept(ctx, kvstore.SenderOf(nats.Header(r.Headers())), r.Data(), func(response model.EnsureResponse) {
		response.Node = v.o.Node
		data, err := json.Marshal(response)
		if err == nil && v.store.Sizes.CheckMessage("answer", data) != nil {
			data, err = json.Marshal(shortened(response))
		}
		if err != nil {
			v.o.Log.Error("cannot encode answer", "node", v.o.Node, "id", response.ID, "error", err)
			return
		}
		v.respond(ctx, reply, data, nil)
	})
}

// shortened removes the long parts of an answer, which the report contains.
func shortened(r model.EnsureResponse) model.EnsureResponse {
	if r.State != nil {
		state := *r.State
		state.Properties, state.Status, state.Outputs, state.HealthCheck, state.Changes = nil, nil, nil, nil, nil
		r.State = &state
	}
	for i, run := range r.Runs {
		if i == 0 {
			r.Runs = slices.Clone(r.Runs)
		}
		if r.Runs[i].Error = ""; !run.OK() {
			r.Runs[i].Error = "see its report"
		}
	}
	if r.Plan != nil {
		plan := *r.Plan
		plan.Transactions, plan.Errors, plan.Cut = nil, nil, true
		r.Plan = &plan
	}

	return r
}

func (v *server) answer(ctx context.Context, r micro.Request, answer Answer) {
	doc, err := answer(ctx, r.Data())
	var data []byte
	if err == nil {
		data, err = json.Marshal(doc)
	}
	if err == nil {
		err = v.store.Sizes.CheckMessage("answer", data)
	}
	if err != nil {
		data = nil
	}
	v.respond(ctx, r.Reply(), data, err)
}

// respond sends an answer. It does not use the request, which is valid only while its handler runs.
// After a lost connection it sends the answer again.
func (v *server) respond(ctx context.Context, reply string, data []byte, problem error) {
	if reply == "" {
		return
	}
	m := kvstore.NewMsg(v.store.Names.AnswerSubject(reply, v.o.Node), data)
	m.Header.Set(NodeHeader, v.o.Node)
	if problem != nil {
		// A header must be a single line.
		m.Header.Set(micro.ErrorHeader, strings.Join(strings.Fields(problem.Error()), " "))
		m.Header.Set(micro.ErrorCodeHeader, codeOf(problem))
	}
	reconnects := v.store.Conn.Stats().Reconnects
	if err := v.store.Conn.PublishMsg(m); err != nil {
		v.o.Log.Warn("cannot send answer", "node", v.o.Node, "error", err)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.stopped {
		v.running.Go(func() { v.confirm(ctx, m, reconnects) })
	}
}

// answerTries limits how often an answer is sent again after lost connections.
const answerTries = 3

// confirm sends an answer again until the server has received it. reconnects is the number of reconnects before the first
// try: a later connection confirms nothing about an earlier one.
func (v *server) confirm(ctx context.Context, m *nats.Msg, reconnects uint64) {
	nc := v.store.Conn
	for range answerTries {
		if v.store.Confirm(ctx) == nil && nc.Stats().Reconnects == reconnects || v.store.AwaitConnection(ctx) != nil {
			return
		}
		reconnects = nc.Stats().Reconnects
		if nc.PublishMsg(m) != nil {
			return
		}
	}
}

// Error codes of invalid requests and of failures on the node.
const (
	codeRequest = "400"
	codeNode    = "500"
)

func codeOf(err error) string {
	if _, found := model.FindProblems(err); found {
		return codeRequest
	}

	return codeNode
}

// semantic returns version in the form that services require.
func semantic(version string) string {
	const number, word = `(0|[1-9]\d*)`, `[0-9A-Za-z-]`
	const part = `(` + number + `|\d*[A-Za-z-]` + word + `*)`
	form := `^` + number + `\.` + number + `\.` + number + `(-` + part + `(\.` + part + `)*)?(\+` + word + `+(\.` + word + `+)*)?$`
	version = strings.TrimPrefix(version, "v")
	if regexp.MustCompile(form).MatchString(version) {
		return version
	}

	return "0.0.0-devel"
}

// isDelivery reports whether the server sent a message from a stream or as a status, judged by its
// reply subject and headers. A node that may read commands can make the server send one to the request
// subject of another node. Nodes therefore reject such messages on request subjects.
func isDelivery(reply string, header nats.Header) bool {
	if strings.HasPrefix(reply, "$JS.") {
		return true
	}
	for _, name := range serverHeaders() {
		if _, found := header[name]; found {
			return true
		}
	}

	return false
}

// serverHeaders returns the headers that the server adds to stored messages. No client sets them in a
// request.
func serverHeaders() []string {
	return []string{
		nats.JSStream, nats.JSSequence, nats.JSTimeStamp, nats.JSSubject, nats.JSLastSequence,
		"Nats-Num-Pending", "Nats-UpTo-Sequence", "Nats-Marker-Reason", "Nats-Stream-Source", "Nats-Msg-Size",
		"Nats-Pending-Messages", "Nats-Pending-Bytes", "Nats-Last-Consumer", "Nats-Last-Stream", "Nats-Consumer-Stalled",
		"Status",
	}
}
