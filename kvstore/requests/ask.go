// Package requests sends live requests to nodes, returns their answers, and queues commands for nodes.
package requests

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/nats-io/nuid"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// Client sends requests to nodes and serves the requests to one node.
type Client struct {
	store  *kvstore.Store
	sender model.Sender
}

// New returns the client of a fleet.
func New(s *kvstore.Store) Client { return Client{store: s} }

// From returns a client that adds the sender to its requests.
func (s Client) From(sender model.Sender) Client { return Client{s.store, sender} }

// ErrNobody reports that no node subscribes to the request: none is connected, or none has that name
// or group.
var ErrNobody = errors.New("no node listens")

// Reply is one answer of one node.
type Reply struct {
	// Node is the answering node, which the server's permissions prove. It is empty for an answer of
	// another subscriber, such as service discovery.
	Node string
	Data []byte
	// Problem is the reason why the node has no answer. Then Data is empty.
	Problem string
	// Flood reports that the node sends too many answers. Ask drops its later answers.
	Flood bool
}

// Request is a request to the nodes that subscribe to a subject.
type Request struct {
	Subject string
	Data    []byte
	// Awaited are nodes that the caller expects. While one is missing, "no responders" is not
	// ErrNobody.
	Awaited []string
}

// Ask sends requests of one verb to the nodes that subscribe to their subjects, see Names.Request. all must not be empty. Ask
// yields the answers as they arrive until the context ends, which is no error. A node may send several answers.
// Ask yields an error that wraps ErrLost at most once and continues. Any other error is the last item.
// It wraps ErrNobody, except for several requests, or model.ErrTooLarge, or comes from the connection. While the caller
// handles an answer, the NATS client buffers up to 64 MiB of further answers, and Ask repeats no request.
//
// Ask waits for a connection. Nodes must execute each request once, by its id, because Ask
// repeats requests: to nodes that do not answer, to groups while an awaited node is missing, and to
// all after a reconnect.
func (s Client) Ask(ctx context.Context, all []Request) iter.Seq2[Reply, error] {
	return func(yield func(Reply, error) bool) {
		err := s.prepare(ctx, all)
		if err == nil {
			err = s.ask(ctx, all, yield)
		}
		if err != nil && ctx.Err() == nil {
			yield(Reply{}, err)
		}
	}
}

// prepare waits for a connection and returns why requests cannot be sent.
func (s Client) prepare(ctx context.Context, all []Request) error {
	for _, r := range all {
		if err := s.store.Sizes.CheckMessage("request", r.Data); err != nil {
			return err
		}
	}
	if err := s.store.AwaitConnection(ctx); err != nil {
		return err
	}
	subject := all[0].Subject
	err := s.permitted(ctx, s.store.Names.VerbOf(subject))
	if errors.Is(err, ErrRequestsNotPermitted) {
		err = fmt.Errorf("ask %s: %w that you could reach: %w, others queue them (--queue)", subject, ErrNobody, err)
	}

	return err
}

// ask sends requests and yields the answers. It returns nil when the caller stops.
func (s Client) ask(ctx context.Context, all []Request, yield func(Reply, error) bool) error {
	question := s.newQuestion()
	concerned := []string{question.answer("*")}
	for _, r := range all {
		concerned = append(concerned, r.Subject)
	}
	permitted, done := s.store.Denials.Permitted(ctx, kvstore.To(concerned...))
	defer func() { _ = done(nil) }()
	r := &reader{client: s, question: question, again: newRepeats(s.store, all, time.Now()), yield: yield, sent: map[string]sent{}, reconnects: s.store.Conn.Stats().Reconnects}
	var err error
	if r.sub, err = s.store.Conn.SubscribeSync(question.answer("*")); err == nil {
		defer func() { _ = r.sub.Unsubscribe() }()
		r.early, err = s.send(permitted, r.sub, all, question.reply)
	}
	if !r.again.isFinal(time.Now()) {
		r.early = 0
	}
	if err == nil {
		err = r.read(permitted)
	}
	if err != nil {
		return fmt.Errorf("ask %s: %w", all[0].Subject, done(err))
	}

	return nil
}

type question struct {
	// reply is the reply subject of the requests.
	reply string
	// answer returns the subject on which the answer of a node arrives. node may be the wildcard *.
	answer func(node string) string
}

// newQuestion returns a new question. The answer subjects of a requester contain its name, so no other
// user can read the answers.
func (s Client) newQuestion() question {
	n, unique := s.store.Names, nuid.Next()
	if !s.isJoined() {
		return question{n.Reply(unique, kvstore.AskedReply), func(node string) string { return n.Reply(unique, node) }}
	}
	user := s.store.User

	return question{n.Reply(user+unique, kvstore.AskedReply), func(node string) string { return n.Answer(user, unique, node) }}
}

// send sends requests. early is the number of messages that arrived before the server confirmed a single request. Only
// they can report "no responders". A lost connection is not an error, because the requests may have reached nodes.
func (s Client) send(ctx context.Context, sub *nats.Subscription, all []Request, reply string) (early int, err error) {
	if err := s.publish(all, reply); err != nil {
		return 0, err
	}
	flush, cancel := context.WithTimeout(ctx, kvstore.RequestTimeout)
	defer cancel()
	if err := s.store.Confirm(flush); err != nil {
		if !s.store.Conn.IsClosed() && flush.Err() == nil {
			return 0, nil
		}
		return 0, err
	}
	if len(all) > 1 {
		return 0, nil
	}
	early, _, err = sub.Pending()

	return early, err
}

func (s Client) publish(all []Request, reply string) error {
	for _, r := range all {
		m := nats.NewMsg(r.Subject)
		m.Reply, m.Data = reply, r.Data
		kvstore.SetSender(m, s.sender)
		if err := s.store.Conn.PublishMsg(m); err != nil {
			return err
		}
	}

	return nil
}

// readReply decodes an answer. ok is false if the node in the answer does not match the subject. Any
// node can make the server send messages to a subject of its answers.
func readReply(q question, m *nats.Msg) (r Reply, ok bool) {
	r = Reply{Data: m.Data, Problem: m.Header.Get(micro.ErrorHeader)}
	if isDelivery(m.Reply, m.Header) {
		return r, false
	}
	if m.Subject == q.answer(kvstore.AskedReply) {
		return r, true
	}
	r.Node = m.Header.Get(NodeHeader)

	return r, r.Node != "" && m.Subject == q.answer(r.Node)
}

// Limits for the answers of one node to one question. A node needs three small answers.
const (
	maxAnswers     = 32
	maxAnswerBytes = 2 << 20
)

const lossCheck = time.Second

// ErrLost reports that answers may be lost, because the connection was lost or answers arrived faster
// than they were read. Ask continues after it.
var ErrLost = errors.New("answers may be lost")

type sent struct{ count, bytes int }

// isTooMuch reports whether further answers of the node are dropped.
func (s sent) isTooMuch() bool { return s.count > maxAnswers || s.bytes > maxAnswerBytes }

// reader reads the answers to one question and sends due requests again.
type reader struct {
	client   Client
	sub      *nats.Subscription
	question question
	again    *repeats
	yield    func(Reply, error) bool
	// sent counts the answers of each node.
	sent map[string]sent
	// isLost reports whether a loss was yielded.
	isLost bool
	// early is the number of messages that can report "no responders". reconnects is the number of reconnects before
	// the question was sent.
	early      int
	reconnects uint64
}

// read reads answers until the context ends, the connection is closed or the caller stops, which is no error. It continues
// after a lost message or connection, because the client reconnects and subscribes again.
func (r *reader) read(ctx context.Context) error {
	store, nc := r.client.store, r.client.store.Conn
	heard := time.Now()
	for count := 0; ; {
		wait, done := context.WithTimeout(ctx, lossCheck)
		m, err := r.sub.NextMsgWithContext(wait)
		done()
		if store.Away() == nil {
			// A failed publish is lost with the connection, and repeated later.
			_ = r.client.publish(r.again.due(time.Now()), r.question.reply)
		}
		if !nc.IsClosed() && (!nc.IsConnected() || nc.Stats().Reconnects != r.reconnects) && !r.lost(nats.ErrDisconnected) {
			return nil
		}
		switch {
		case err == nil:
			heard = time.Now()
			if !r.accept(m) {
				return nil
			}
		case errors.Is(err, nats.ErrSlowConsumer):
			if !r.lost(err) {
				return nil
			}
			continue
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			if time.Since(heard) >= repeatEvery {
				store.LeaveSilent(ctx)
				heard = time.Now()
			}
			continue
		case errors.Is(err, nats.ErrNoResponders) && count == 0 && r.early > 0:
			return ErrNobody
		case errors.Is(err, nats.ErrNoResponders):
			// Another client can send this status too. It says nothing about other nodes.
		default:
			return err
		}
		count++
	}
}

// accept yields an answer and reports whether the caller wants more. If the node exceeds its limits, accept yields one
// error instead and drops later answers.
func (r *reader) accept(m *nats.Msg) bool {
	reply, ok := readReply(r.question, m)
	if !ok {
		return true
	}
	r.again.answered(reply.Node)
	if reply.Node != "" {
		s := r.sent[reply.Node]
		if s.isTooMuch() {
			return true
		}
		s.count, s.bytes = s.count+1, s.bytes+len(reply.Data)+len(reply.Problem)
		r.sent[reply.Node] = s
		if s.isTooMuch() {
			reply = Reply{Node: reply.Node, Flood: true, Problem: fmt.Sprintf("a flood of answers: more than %d, or %d MiB; the rest is dropped", maxAnswers, maxAnswerBytes>>20)}
		}
	}

	return r.yield(reply, nil)
}

// lost yields once that answers may be lost, and reports whether the caller wants more.
func (r *reader) lost(err error) bool {
	if r.isLost {
		return true
	}
	r.isLost = true

	return r.yield(Reply{}, fmt.Errorf("%w: %w", ErrLost, err))
}

const (
	// repeatEvery is the pause before a request is sent again to a node without an answer.
	repeatEvery = 2 * time.Second
	// repeatFor is how long such requests are repeated on a stable connection.
	repeatFor = kvstore.Settling + time.Second
	// A node leaves a hung server after up to 20 s, and may first try that server again for 5 s. In
	// that time its request is repeated less often.
	repeatLateEvery = 6 * time.Second
	repeatLateFor   = 32 * time.Second
	// maxRepeats limits the repetitions. A node answers each of them, see maxAnswers.
	maxRepeats = 8
)

// repeats decides which requests are sent again. One goroutine uses it.
type repeats struct {
	// waiting holds the requests to single nodes without an answer, by subject. groups holds all other
	// requests.
	waiting map[string]Request
	groups  []Request
	// awaited holds the nodes without an answer that the caller expects.
	awaited map[string]bool
	// subject returns the request subject of a node.
	subject func(node string) string
	// reconnected returns the time of the last reconnect.
	reconnected func() time.Time
	// begun is the time of the first request. toNodes and toGroups are the times of the last requests
	// to nodes and groups.
	begun, toNodes, toGroups time.Time
	count                    int
}

// newRepeats returns the repeater for requests that are sent now.
func newRepeats(store *kvstore.Store, all []Request, now time.Time) *repeats {
	names := store.Names
	verb := names.VerbOf(all[0].Subject)
	out := &repeats{
		waiting: map[string]Request{}, awaited: map[string]bool{}, reconnected: store.Reconnected, begun: now, toNodes: now, toGroups: now,
		subject: func(node string) string { return names.Request(verb, model.NodeFamily(node)) },
	}
	for _, r := range all {
		for _, node := range r.Awaited {
			out.awaited[node] = true
		}
		if strings.HasPrefix(r.Subject, out.subject("")) {
			out.waiting[r.Subject] = r
			continue
		}
		out.groups = append(out.groups, r)
	}

	return out
}

func (r *repeats) answered(node string) {
	delete(r.waiting, r.subject(node))
	delete(r.awaited, node)
}

// isSettling reports whether nodes may still reconnect after the last loss.
func (r *repeats) isSettling(now time.Time) bool { return now.Sub(r.reconnected()) < kvstore.Settling }

// isFinal reports whether no further node will subscribe. Awaited nodes may still reconnect after an
// outage that ended before this process started.
func (r *repeats) isFinal(now time.Time) bool { return !r.isSettling(now) && len(r.awaited) == 0 }

// due returns the requests to single nodes without an answer, for a limited time. It adds the requests
// to groups while awaited nodes are missing, once after a reconnect, and once when all nodes had time
// to reconnect.
func (r *repeats) due(now time.Time) []Request {
	if r.count >= maxRepeats {
		return nil
	}
	var out []Request
	up := r.reconnected()
	isLost := r.toNodes.Before(up)
	since, age := now.Sub(r.toNodes), now.Sub(r.begun)
	isDue := isLost || since >= repeatEvery && (r.isSettling(r.toNodes) || age < repeatFor) || since >= repeatLateEvery && age < repeatLateFor
	if isDue {
		r.toNodes = now
		out = slices.Collect(maps.Values(r.waiting))
	}
	settled := up.Add(kvstore.Settling)
	if isDue && len(r.awaited) > 0 || r.toGroups.Before(up) || r.toGroups.Before(settled) && !now.Before(settled) {
		r.toGroups = now
		out = append(out, r.groups...)
	}
	if len(out) > 0 {
		r.count++
	}

	return out
}
