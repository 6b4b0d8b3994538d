package kvstore

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Stream reads a stream from the operator's side, in the account of the fleet through
// a consumer, which it deletes afterwards: what is stored now, or with
// follow also what arrives until the context ends. An error is the last thing it yields.
func scanStream(ctx context.Context, s *Store, stream string, cfg jetstream.OrderedConsumerConfig, follow bool) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		cfg.InactiveThreshold = time.Minute
		if err := s.Bind(ctx, stream); err != nil {
			yield(Message{}, fmt.Errorf("read %s: %w", stream, err))
			return
		}
		api := s.Places().InUse()
		if !api.IsOwn() {
			scanByGets(ctx, s, stream, cfg, follow)(yield)
			return
		}
		ctx, done := s.Denials().Permitted(ctx, api.About(stream))
		defer func() { _ = done(nil) }()
		if err := scanByConsumer(ctx, s, stream, cfg, follow, yield); err != nil {
			yield(Message{}, fmt.Errorf("read %s: %w", stream, done(err)))
		}
	}
}

// forget deletes a consumer, also when the context has ended. The server removes
// one that cannot be deleted now, because nobody uses it.
func deleteConsumer(ctx context.Context, s *Store, stream, consumer string) {
	if !s.Conn().IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RequestTimeout)
	defer cancel()
	_ = s.JetStream().DeleteConsumer(ctx, stream, consumer)
}
