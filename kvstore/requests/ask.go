// Package requests carries live requests to nodes and their answers, and the
// commands that are queued for nodes.
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

// Client sends requests to nodes, and serves those of one.
type Client struct {
	store  *kvstore.Store
	sender model.Sender
}

// New returns the client of a fleet.
func New(s *kvstore.Store) Client { return Client{store: s} }

// From returns a client whose requests say who sends them.
func (s Client) From(sender model.Sender) Client { return Client{s.store, sender} }

// ErrNobody is a request that no node listens to: none is connected, or none has
// that name or group.
var ErrNobody = errors.New("no node listens")

// Reply is one answer of one node.
type Reply struct {
	// Node is the node, as permissions prove it; empty for an answer of something else
	// that listens to the subject, such as the discovery of services.
	Node string
	Data []byte
	// Problem is why the node has no answer; then Data is empty.
	Problem string
	// Flood is set for a node that sends too much; nothing more of it follows.
	Flood bool
}

// Ask sends a request to the nodes that listen to a subject, see Names.Request, and
// yields the answers as they arrive, several of one node where it sends several,
// until the context ends, which is no error. An error that wraps ErrLost is yielded
// once, and the question goes on. Any other is the last thing yielded: it wraps
// ErrNobody or model.ErrTooLarge, or is of the connection. What is yielded may be used
// slowly: 32 answers or 2 MiB of one node are kept.
func (s Client) Ask(ctx context.Context, subject string, request []byte) iter.Seq2[Reply, error] {
	return s.ask(ctx, []Request{{Subject: subject, Data: request}}, never{})
}

// Request is a request to the nodes that listen to a subject.
type Request struct {
	Subject string
	Data    []byte
	// Awaited are nodes that should be there: that nobody listens yet is no ErrNobody while they are missing.
	Awaited []string
}

// AskEach is Ask for several requests of one verb, at least one, as one question with one
// subscription. Of several it is not known which of them nobody listens to: that is no ErrNobody.
//
// Nodes must execute each request once, by its id, however often it comes: it is sent again to
// nodes that do not answer, to groups while an awaited node does not, and to all when a lost connection was
// made again. It is sent once there is a connection.
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

// ask is Ask for several requests, which are repeated.
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

// question is where answers to requests go.
type question struct {
	// reply is the reply subject of the requests.
	reply string
	// answer returns where the answer of a node arrives, which may be the wildcard *.
	answer func(node string) string
}

// newQuestion returns a new question. A requester gets answers on subjects that name it: so nobody
// else may hear them.
func (s Client) newQuestion() question {
	n, unique := s.store.Names(), nuid.Next()
	if !s.isJoined() {
		return question{n.Reply(unique, kvstore.AskedReply), func(node string) string { return n.Reply(unique, node) }}
	}
	user := s.store.User()

	return question{n.Reply(kvstore.Question(user, unique), kvstore.AskedReply), func(node string) string { return n.Answer(user, unique, node) }}
}

// send sends requests and returns how many messages arrived before the server
// had accepted them: of one request, only among these is that nobody listens. That the connection is lost
// meanwhile is no error of requests that are sent again: they may have reached nodes.
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

// readReply reads an answer; ok is false for one of another node than that of its
// subject. The server would send answers of its own there, for any node that asks
// it to.
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
