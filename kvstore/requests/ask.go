// Package requests sends live requests to nodes, returns their answers, and queues commands for nodes.
package requests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
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

// From returns a client whose requests carry the sender.
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

// Ask sends a request to the nodes that subscribe to a subject, see Names.Request. It yields the
// answers as they arrive until the context ends, which is no error. A node may send several answers.
// Ask yields an error that wraps ErrLost at most once and continues. Any other error is the last item.
// It wraps ErrNobody or model.ErrTooLarge, or comes from the connection. The caller may be slow: Ask
// buffers up to 32 answers or 2 MiB per node.
func (s Client) Ask(ctx context.Context, subject string, request []byte) iter.Seq2[Reply, error] {
	return s.ask(ctx, []Request{{Subject: subject, Data: request}}, never{})
}

// Request is a request to the nodes that subscribe to a subject.
type Request struct {
	Subject string
	Data    []byte
	// Awaited are nodes that the caller expects. While one is missing, "no responders" is not
	// ErrNobody.
	Awaited []string
}

// AskEach sends several requests of one verb with one subscription and yields the answers like Ask.
// all must not be empty. With several requests, it never returns ErrNobody.
//
// AskEach waits for a connection. Nodes must execute each request once, by its id, because AskEach
// repeats requests: to nodes that do not answer, to groups while an awaited node is missing, and to
// all after a reconnect.
func (s Client) AskEach(ctx context.Context, all []Request) iter.Seq2[Reply, error] {
	return func(yield func(Reply, error) bool) {
		if err := s.store.AwaitConnection(ctx); err != nil {
			if ctx.Err() == nil {
				yield(Reply{}, fmt.Errorf("ask %s: %w", all[0].Subject, err))
			}
			return
		}
		s.ask(ctx, all, newRepeats(s.store, all, time.Now()))(yield)
	}
}

// ask implements Ask and AskEach.
func (s Client) ask(ctx context.Context, all []Request, again repeater) iter.Seq2[Reply, error] {
	return func(yield func(Reply, error) bool) {
		subject := all[0].Subject
		concerned := make([]string, 0, len(all)+1)
		var err error
		for _, r := range all {
			concerned = append(concerned, r.Subject)
			err = cmp.Or(err, s.store.Sizes().CheckMessage("request", r.Data))
		}
		if err == nil {
			err = s.permitted(ctx, s.store.Names().VerbOf(subject))
		}
		if errors.Is(err, ErrRequestsNotPermitted) {
			err = fmt.Errorf("ask %s: %w that you could reach: %w, others queue them (--queue)", subject, ErrNobody, err)
		}
		if err != nil {
			if ctx.Err() == nil {
				yield(Reply{}, err)
			}
			return
		}
		question := s.newQuestion()
		permitted, done := s.store.Denials().Permitted(ctx, kvstore.To(append(concerned, question.answer("*"))...))
		defer func() { _ = done(nil) }()
		nc := s.store.Conn()
		reconnects := nc.Stats().Reconnects
		sub, err := nc.SubscribeSync(question.answer("*"))
		early := 0
		if err == nil {
			defer func() { _ = sub.Unsubscribe() }()
			early, err = s.send(permitted, sub, all, question.reply, again)
			if !again.isFinal(time.Now()) {
				early = 0
			}
		}
		if err == nil {
			reading, stop := context.WithCancel(permitted)
			var reader sync.WaitGroup
			defer reader.Wait()
			defer stop()
			answers := newAnswers()
			reader.Go(func() { s.read(reading, sub, question, early, reconnects, answers, again) })
			for {
				one, ok := answers.next(permitted)
				if err = one.err; !ok {
					err = permitted.Err()
				}
				if !ok || one.last {
					break
				}
				if !yield(one.reply, one.err) {
					return
				}
			}
		}
		if ctx.Err() == nil {
			yield(Reply{}, fmt.Errorf("ask %s: %w", subject, done(err)))
		}
	}
}

// question holds the subjects for the answers.
type question struct {
	// reply is the reply subject of the requests.
	reply string
	// answer returns the subject on which the answer of a node arrives. node may be the wildcard *.
	answer func(node string) string
}

// newQuestion returns a new question. The answer subjects of a requester contain its name, so no other
// user can read the answers.
func (s Client) newQuestion() question {
	n, unique := s.store.Names(), nuid.Next()
	if !s.isJoined() {
		return question{n.Reply(unique, kvstore.AskedReply), func(node string) string { return n.Reply(unique, node) }}
	}
	user := s.store.User()

	return question{n.Reply(kvstore.Question(user, unique), kvstore.AskedReply), func(node string) string { return n.Answer(user, unique, node) }}
}

// send sends requests. early is the number of messages that arrived before the server confirmed them:
// only such a message can report "no responders" for a single request. A lost connection is no error
// for repeated requests, which may have reached nodes.
func (s Client) send(ctx context.Context, sub *nats.Subscription, all []Request, reply string, again repeater) (early int, err error) {
	if err := s.publish(all, reply); err != nil {
		return 0, err
	}
	flush, cancel := context.WithTimeout(ctx, kvstore.RequestTimeout)
	defer cancel()
	if err := s.store.Confirm(flush); err != nil {
		if again.isRepeated() && !s.store.Conn().IsClosed() && flush.Err() == nil {
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

// publish sends requests.
func (s Client) publish(all []Request, reply string) error {
	for _, r := range all {
		m := nats.NewMsg(r.Subject)
		m.Reply, m.Data = reply, r.Data
		kvstore.SetSender(m, s.sender)
		if err := s.store.Conn().PublishMsg(m); err != nil {
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
