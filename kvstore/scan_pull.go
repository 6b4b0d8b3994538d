package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// pullWait is how long a request for messages waits for them when a stream is
// followed.
const pullWait = 5 * time.Second

// maxIdle is how many consumers in a row may deliver nothing of what they said is left: then
// it is not there.
const maxIdle = 3

// errNothing is that a consumer delivers nothing more, although messages are left: they were
// removed, or the server has forgotten the consumer.
var errNothing = fmt.Errorf("%w: it delivers nothing more", errLost)

// errLost is a consumer that is gone, or that skipped messages: another one goes on.
var errLost = errors.New("the consumer was lost")

// pull is a consumer that is asked for messages. The client's own takes a message that
// was stored empty with a status as a header for the server's word, and drops it. Here
// what the server says of a message, in the subject for its acknowledgement, decides.
type consumerPull struct {
	store            *Store
	stream, consumer string
	follow           bool
	// batch is how many messages are asked for at once.
	batch    int
	sub      *nats.Subscription
	messages chan *nats.Msg
	// pending is how many messages are left, asked of how many the server still
	// delivers without another request, delivered the last one's number.
	pending, delivered uint64
	asked              int
}

// byConsumer yields what a consumer delivers. Where it is lost, another one goes on
// behind the last message.
func scanByConsumer(ctx context.Context, s *Store, stream string, cfg jetstream.OrderedConsumerConfig, follow bool, yield func(Message, error) bool) error {
	var last uint64
	idle, stopped := 0, false
	for began := false; ; began = true {
		idle++
		more, err := scanOneConsumer(ctx, s, stream, cfg, follow, func(m Message) bool {
			if m.Sequence <= last {
				return true // of a new consumer that begins with the newest of each subject
			}
			last, idle = m.Sequence, 0
			stopped = !yield(m, nil)

			return !stopped
		})
		switch {
		case ctx.Err() != nil && (more || err != nil):
			return errors.Join(ctx.Err(), context.Cause(ctx))
		case err != nil && !errors.Is(err, errLost) && (!began || s.Conn().IsClosed() || errors.Is(err, jetstream.ErrStreamNotFound)):
			return err
		case stopped:
			return nil
		case err == nil && !more, !follow && errors.Is(err, errNothing) && idle >= maxIdle:
			if !follow && cfg.DeliverPolicy == jetstream.DeliverLastPerSubjectPolicy {
				return scanNewer(ctx, s, stream, cfg, last, yield)
			}
			return nil
		}
		if last > 0 && cfg.DeliverPolicy != jetstream.DeliverLastPerSubjectPolicy {
			cfg.DeliverPolicy, cfg.OptStartSeq, cfg.OptStartTime = jetstream.DeliverByStartSequencePolicy, last+1, nil
		}
		if err := Pause(ctx, followPause); err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// newer yields what is stored behind a sequence. A consumer of the newest of each subject misses one that is written while it
// is made: the server counts it as none that is left.
func scanNewer(ctx context.Context, s *Store, stream string, cfg jetstream.OrderedConsumerConfig, last uint64, yield func(Message, error) bool) error {
	for m, err := range readStream(ctx, s, stream, jetstream.OrderedConsumerConfig{FilterSubjects: cfg.FilterSubjects, OptStartSeq: last + 1}, false) {
		if err != nil {
			return err
		}
		if !yield(m, nil) {
			break
		}
	}

	return nil
}

// oneConsumer yields what one consumer delivers; more reports that there may be more.
func scanOneConsumer(ctx context.Context, s *Store, stream string, cfg jetstream.OrderedConsumerConfig, follow bool, yield func(Message) bool) (more bool, err error) {
	c := jetstream.ConsumerConfig{
		DeliverPolicy: cfg.DeliverPolicy, OptStartSeq: cfg.OptStartSeq, OptStartTime: cfg.OptStartTime, FilterSubjects: cfg.FilterSubjects, HeadersOnly: cfg.HeadersOnly,
		AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: cfg.InactiveThreshold, MemoryStorage: true, Replicas: 1,
	}
	if len(c.FilterSubjects) == 1 {
		c.FilterSubject, c.FilterSubjects = c.FilterSubjects[0], nil
	}
	consumer, err := s.JetStream().CreateConsumer(ctx, stream, c)
	if err != nil {
		return false, err
	}
	info := consumer.CachedInfo()
	defer deleteConsumer(ctx, s, stream, info.Name)
	p := &consumerPull{store: s, stream: stream, consumer: info.Name, follow: follow, batch: batchSize, pending: info.NumPending}
	if err := p.subscribe(); err != nil {
		return false, err
	}
	defer func() { _ = p.sub.Unsubscribe() }()
	for follow || p.pending > 0 {
		m, ok, err := p.next(ctx)
		if err != nil {
			return true, err
		}
		if ok && !yield(m) {
			return false, nil
		}
	}

	return false, nil
}

// subscribe makes the place for the messages.
func (p *consumerPull) subscribe() (err error) {
	// It has room for what two requests deliver; what is dropped all the same is missed.
	p.messages = make(chan *nats.Msg, 2*batchSize)
	p.sub, err = p.store.Conn().ChanSubscribe(p.store.Conn().NewInbox(), p.messages)

	return err
}

// next waits for the message that follows the last one; ok is false where the server delivers
// none now.
func (p *consumerPull) next(ctx context.Context) (m Message, ok bool, err error) {
	msg, meta, err := p.receive(ctx)
	if err != nil || meta == nil {
		return m, false, err
	}
	if meta.Sequence.Consumer != p.delivered+1 {
		return m, false, fmt.Errorf("%w: %d follows %d", errLost, meta.Sequence.Consumer, p.delivered)
	}
	p.delivered, p.pending = meta.Sequence.Consumer, meta.NumPending

	return decodeDelivery(msg, meta), true, nil
}

// receive waits for a message, and asks for more where none is under way; meta is nil where the
// server delivers none now.
func (p *consumerPull) receive(ctx context.Context) (msg *nats.Msg, meta *nats.MsgMetadata, err error) {
	if p.asked == 0 {
		if err := p.ask(); err != nil {
			return nil, nil, err
		}
	}
	if msg, err = p.await(ctx); err != nil {
		return nil, nil, err
	}
	meta, err = msg.Metadata()
	if err != nil {
		return nil, nil, p.control(msg)
	}
	if meta.Stream != p.stream || meta.Consumer != p.consumer {
		return nil, nil, nil
	}
	p.asked--

	return msg, meta, nil
}

// await waits for what the server sends next.
func (p *consumerPull) await(ctx context.Context) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case msg := <-p.messages:
		return msg, nil
	default: // only what is not there yet needs a timer
	}
	select {
	case msg := <-p.messages:
		return msg, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(pullWait + RequestTimeout):
		return nil, fmt.Errorf("%w: it does not answer", errLost)
	}
}

// ask asks for a number of messages: those that are there, or where the stream is
// followed also those that arrive for a while.
func (p *consumerPull) ask() error {
	request := map[string]any{"batch": p.batch, "no_wait": true}
	p.asked = int(min(p.pending, uint64(p.batch)))
	if p.follow {
		request, p.asked = map[string]any{"batch": p.batch, "expires": pullWait}, p.batch
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	api := p.store.Places().InUse()

	return p.store.Conn().PublishRequest(api.Next(p.stream, p.consumer), p.sub.Subject, body)
}

// control takes the server's word that it delivers nothing more of what was asked.
func (p *consumerPull) control(m *nats.Msg) error {
	switch status := lastHeader(m.Header, "Status"); status {
	case "404":
		if p.pending > 0 {
			return errNothing
		}
		p.asked = 0
	case "408":
		p.asked = 0
	default:
		return fmt.Errorf("%w: %s %s", errLost, status, lastHeader(m.Header, "Description"))
	}

	return nil
}

// stored decodes a message that a consumer delivered. Its subject is the server's word.
func decodeDelivery(m *nats.Msg, meta *nats.MsgMetadata) Message {
	out := Message{Subject: m.Subject, Sequence: meta.Sequence.Stream, Time: meta.Timestamp, Header: m.Header, Data: m.Data}
	if out.Header == nil {
		out.Header = nats.Header{}
	}
	out.Unreadable = !hasAllHeaders(m)
	out.Forged = out.Unreadable || hasServerHeaders(out.Header, 0)

	return out
}
