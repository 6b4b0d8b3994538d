package scan

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
)

// Stream reads a stream from the operator's side, in the account of the fleet through
// a consumer, which it deletes afterwards: what is stored now, or with
// follow also what arrives until the context ends. An error is the last thing it yields.
func Stream(ctx context.Context, s *kvstore.Store, stream string, cfg jetstream.OrderedConsumerConfig, follow bool) iter.Seq2[kvstore.Message, error] {
	return func(yield func(kvstore.Message, error) bool) {
		cfg.InactiveThreshold = time.Minute
		if err := s.Bind(ctx, stream); err != nil {
			yield(kvstore.Message{}, fmt.Errorf("read %s: %w", stream, err))
			return
		}
		api := s.Places().InUse()
		if !api.IsOwn() {
			byGets(ctx, s, stream, cfg, follow)(yield)
			return
		}
		ctx, done := s.Denials().Permitted(ctx, api.About(stream))
		defer func() { _ = done(nil) }()
		if err := byConsumer(ctx, s, stream, cfg, follow, yield); err != nil {
			yield(kvstore.Message{}, fmt.Errorf("read %s: %w", stream, done(err)))
		}
	}
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
