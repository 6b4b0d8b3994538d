package kvstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// drainBatch is how many messages are asked for at once.
const drainBatch = 256

// Drain calls each with every message that a consumer has now, and removes the
// consumer. Of several with one name the last wins: the ones before did not end.
func (s *Store) Drain(ctx context.Context, stream string, cfg jetstream.ConsumerConfig, each func(Message)) (err error) {
	cfg.AckPolicy, cfg.MemoryStorage, cfg.Replicas, cfg.InactiveThreshold = jetstream.AckNonePolicy, true, 1, 30*time.Second
	if err := s.bind(ctx, stream); err != nil {
		return err
	}
	ctx, done := s.Permitted(ctx, s.api().About(stream))
	defer func() { err = done(err) }()
	consumer, err := s.JetStream().CreateConsumer(ctx, stream, cfg)
	if errors.Is(err, jetstream.ErrConsumerExists) {
		_ = s.JetStream().DeleteConsumer(ctx, stream, cfg.Name)
		consumer, err = s.JetStream().CreateConsumer(ctx, stream, cfg)
	}
	var refused *jetstream.APIError
	if !errors.As(err, &refused) {
		// Also after an error: the answer may be lost, and the consumer made.
		defer s.forget(ctx, stream, cfg.Name)
	}
	if err != nil {
		return err
	}
	for left := consumer.CachedInfo().NumPending; left > 0; {
		before := left
		batch, err := consumer.Fetch(int(min(left, drainBatch)), jetstream.FetchMaxWait(RequestTimeout))
		if err != nil {
			return err
		}
		for raw := range batch.Messages() {
			m, pending, err := stored(raw)
			if err != nil {
				return err
			}
			each(m)
			left = pending
		}
		if err := batch.Error(); err != nil {
			return err
		}
		if left == before {
			return fmt.Errorf("%d messages did not arrive within %s", left, RequestTimeout)
		}
	}

	return nil
}
