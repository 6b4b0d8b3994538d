package kvstore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

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
	if !s.Places().InUse().IsOwn() {
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
		if meta != nil && !yield(Delivery{decodeDelivery(msg, meta), s.Conn(), msg.Reply}) {
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
