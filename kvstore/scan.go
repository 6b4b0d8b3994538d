package kvstore

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// scanStream yields the stored messages of a stream. With follow it continues with new messages until
// ctx ends. It is for operators: in the fleet's account it uses a consumer and deletes it afterwards.
// An error is the last item.
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

// deleteConsumer deletes a consumer, even if ctx has ended. If that fails, the server deletes the
// unused consumer later.
func deleteConsumer(ctx context.Context, s *Store, stream, consumer string) {
	if !s.Conn().IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RequestTimeout)
	defer cancel()
	_ = s.JetStream().DeleteConsumer(ctx, stream, consumer)
}
