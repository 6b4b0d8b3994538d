package scan

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/answer"
)

// Stream reads a stream from the operator's side, in the account of the fleet through
// an ordered consumer, which it deletes afterwards: what is stored now, or with
// follow also what arrives until the context ends. An error is the last thing it yields.
func Stream(ctx context.Context, s *kvstore.Store, stream string, cfg jetstream.OrderedConsumerConfig, follow bool) iter.Seq2[kvstore.Message, error] {
	return func(yield func(kvstore.Message, error) bool) {
		cfg.InactiveThreshold = time.Minute
		if err := s.Bind(ctx, stream); err != nil {
			yield(kvstore.Message{}, fmt.Errorf("read %s: %w", stream, err))
			return
		}
		api, _ := s.API()
		if !api.IsOwn() {
			byGets(ctx, s, stream, cfg, follow)(yield)
			return
		}
		ctx, done := s.Permitted(ctx, api.About(stream))
		defer func() { _ = done(nil) }()
		consumer, err := s.JetStream().OrderedConsumer(ctx, stream, cfg)
		if err != nil {
			yield(kvstore.Message{}, fmt.Errorf("read %s: %w", stream, done(err)))
			return
		}
		defer func() { forget(ctx, s, stream, consumer.CachedInfo().Name) }()
		pending := consumer.CachedInfo().NumPending
		messages, err := consumer.Messages()
		if err != nil {
			yield(kvstore.Message{}, fmt.Errorf("read %s: %w", stream, err))
			return
		}
		defer messages.Stop()
		for follow || pending > 0 {
			m, left, err := next(ctx, messages)
			if err != nil {
				yield(kvstore.Message{}, fmt.Errorf("read %s: %w", stream, err))
				return
			}
			if !yield(m, nil) {
				return
			}
			pending = left
		}
	}
}

// next waits for one message and returns how many are left behind it.
func next(ctx context.Context, messages jetstream.MessagesContext) (kvstore.Message, uint64, error) {
	m, err := messages.Next(jetstream.NextContext(ctx))
	if err != nil {
		return kvstore.Message{}, 0, errors.Join(err, context.Cause(ctx))
	}

	return stored(m)
}

// stored decodes a message that a consumer delivered, and returns how many are
// left behind it.
func stored(m jetstream.Msg) (kvstore.Message, uint64, error) {
	meta, err := m.Metadata()
	if err != nil {
		return kvstore.Message{}, 0, err
	}
	header := m.Headers()
	if header == nil {
		header = nats.Header{}
	}

	out := kvstore.Message{Subject: m.Subject(), Sequence: meta.Sequence.Stream, Time: meta.Timestamp, Header: header, Data: m.Data()}
	out.Forged = answer.HasServerHeaders(header, 0)

	return out, meta.NumPending, nil
}

// forget deletes a consumer, also when the context has ended. The server removes
// one that cannot be deleted now, because nobody uses it.
func forget(ctx context.Context, s *kvstore.Store, stream, consumer string) {
	if !s.Conn().IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), kvstore.RequestTimeout)
	defer cancel()
	_ = s.JetStream().DeleteConsumer(ctx, stream, consumer)
}
