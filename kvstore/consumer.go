package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// pullWait is how long a request waits for messages when a stream is followed.
const pullWait = 5 * time.Second

// maxIdle limits the consecutive consumers that deliver nothing although messages are pending. Then
// the messages are gone.
const maxIdle = 3

// errNothing reports that a consumer delivers nothing although messages are pending. They were
// removed, or the server has lost the consumer.
var errNothing = fmt.Errorf("%w: no more messages", errLost)

// errLost reports that a consumer is gone or has skipped messages. The scan continues with another
// consumer.
var errLost = errors.New("the consumer was lost")

// consumerPull pulls the messages of a consumer. The client's own code treats an empty message that
// was stored with a status header as a status of the server, and drops it. consumerPull decides by the
// reply subject, which the server sets.
type consumerPull struct {
	store            *Store
	stream, consumer string
	follow           bool
	// batch is the number of messages per request.
	batch    int
	sub      *nats.Subscription
	messages chan *nats.Msg
	// pending is the number of remaining messages. asked is the number of messages that the server
	// still delivers for the last request. delivered is the consumer sequence of the last message.
	pending, delivered uint64
	asked              int
}

// scanByConsumer yields the messages of a consumer. It replaces a lost consumer by another one after
// the last message.
func scanByConsumer(ctx context.Context, s *Store, stream string, cfg jetstream.OrderedConsumerConfig, follow bool, yield func(Message, error) bool) error {
	var last uint64
	idle, stopped := 0, false
	for began := false; ; began = true {
		idle++
		more, err := scanOneConsumer(ctx, s, stream, cfg, follow, func(m Message) bool {
			if m.Sequence <= last {
				return true // a new consumer starts with the newest message of each subject again
			}
			last, idle = m.Sequence, 0
			stopped = !yield(m, nil)

			return !stopped
		})
		switch {
		case ctx.Err() != nil && (more || err != nil):
			return errors.Join(ctx.Err(), context.Cause(ctx))
		case err != nil && !errors.Is(err, errLost) && (!began || s.Conn.IsClosed() || errors.Is(err, jetstream.ErrStreamNotFound)):
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

// scanNewer yields the messages after a sequence. A consumer for the newest message of each subject
// misses a message that is written during its creation.
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

// scanOneConsumer yields the messages of one consumer. more reports whether messages may remain.
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

func (p *consumerPull) subscribe() (err error) {
	// The channel has room for two requests. Dropped messages are detected later.
	p.messages = make(chan *nats.Msg, 2*batchSize)
	p.sub, err = p.store.Conn.ChanSubscribe(p.store.Conn.NewInbox(), p.messages)

	return err
}

// next waits for the next message. ok is false if the server has none now.
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

// receive waits for a message and sends a request if none is active. meta is nil if the server has no
// message now.
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

func (p *consumerPull) await(ctx context.Context) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case msg := <-p.messages:
		return msg, nil
	default: // only a message that has not arrived needs a timer
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

// ask requests stored messages. If the stream is followed, it also requests messages that arrive
// within pullWait.
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
	api := p.store.API.InUse()

	return p.store.Conn.PublishRequest(api.Next(p.stream, p.consumer), p.sub.Subject, body)
}

// control handles a status message, which ends a request.
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

// decodeDelivery decodes a message of a consumer. The server sets its subject.
func decodeDelivery(m *nats.Msg, meta *nats.MsgMetadata) Message {
	out := Message{Subject: m.Subject, Sequence: meta.Sequence.Stream, Time: meta.Timestamp, Header: m.Header, Data: m.Data}
	if out.Header == nil {
		out.Header = nats.Header{}
	}
	out.Unreadable = !hasAllHeaders(m)
	out.Forged = out.Unreadable || hasServerHeaders(out.Header, 0)

	return out
}

// Delivery is a message of a durable consumer. The server delivers it again, to this or another
// reader, unless Done or Hold is called before the consumer's timeout.
type Delivery struct {
	Message
	conn  *nats.Conn
	reply string
}

// Done acknowledges the message. After an error it may be delivered again.
func (d Delivery) Done(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	_, err := d.conn.RequestWithContext(ctx, d.reply, []byte("+ACK"))

	return err
}

// Again makes the server deliver the message again at once, to this or another reader.
func (d Delivery) Again(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	if err := d.conn.Publish(d.reply, []byte("-NAK")); err != nil {
		return err
	}

	return d.conn.FlushWithContext(ctx)
}

// Hold restarts the timeout of the message.
func (d Delivery) Hold() error { return d.conn.Publish(d.reply, []byte("+WPI")) }

// scanDurable yields the messages of a durable consumer until ctx ends. It creates the consumer, or
// continues an existing one with the subjects of cfg. Readers of one consumer share its messages. An
// error is the last item. The caller may scan again, except after model.ErrOtherAccount.
func scanDurable(ctx context.Context, s *Store, stream string, cfg jetstream.ConsumerConfig) iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		if err := readDurable(ctx, s, stream, cfg, func(d Delivery) bool { return yield(d, nil) }); err != nil {
			yield(Delivery{}, fmt.Errorf("read %s as %s: %w", stream, cfg.Durable, err))
		}
	}
}

func readDurable(ctx context.Context, s *Store, stream string, cfg jetstream.ConsumerConfig, yield func(Delivery) bool) error {
	if err := s.Bind(ctx, stream); err != nil {
		return err
	}
	if !s.API.InUse().IsOwn() {
		return model.ErrOtherAccount
	}
	if err := createDurable(ctx, s.JetStream(), stream, cfg); err != nil {
		return err
	}
	p := &consumerPull{store: s, stream: stream, consumer: cfg.Durable, follow: true, batch: 1}
	if err := p.subscribe(); err != nil {
		return err
	}
	defer func() { _ = p.sub.Unsubscribe() }()
	for {
		msg, meta, err := p.receive(ctx)
		if err != nil {
			return err
		}
		if meta != nil && !yield(Delivery{decodeDelivery(msg, meta), s.Conn, msg.Reply}) {
			return nil
		}
	}
}

// createDurable creates a consumer, or sets the subjects of an existing one and keeps its position.
func createDurable(ctx context.Context, js jetstream.JetStream, stream string, cfg jetstream.ConsumerConfig) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	found, err := js.Consumer(ctx, stream, cfg.Durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		_, err = js.CreateConsumer(ctx, stream, cfg)
		if !errors.Is(err, jetstream.ErrConsumerExists) {
			return err
		}
		found, err = js.Consumer(ctx, stream, cfg.Durable) // another reader was faster
	}
	if err != nil {
		return err
	}
	now := found.CachedInfo().Config
	now.FilterSubjects, now.FilterSubject = cfg.FilterSubjects, ""
	_, err = js.UpdateConsumer(ctx, stream, now)

	return err
}
