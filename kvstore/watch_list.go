package kvstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// list finds the keys that no index names, and plans the next time. A list that
// fails is not a failure of the watch: the index serves.
func (l *loop) list(ctx context.Context) {
	var failed error
	for _, p := range l.parts {
		if !p.complete {
			continue
		}
		if err := l.listFamily(ctx, p.family); err != nil {
			failed = cmp.Or(failed, err) // they mostly have one reason
		}
	}
	if ctx.Err() != nil {
		return
	}
	if failed != nil {
		l.o.Log.Warn("keys cannot be listed, names without an index are seen when they change", "node", l.o.Node, "error", failed)
	}
	l.listAt = time.Now().Add(time.Duration((1 - l.o.Rand()/4) * float64(l.o.ListEvery)))
	l.update(func(s *model.Sync) {
		if s.ListErr = failed; failed == nil {
			s.Listed = l.o.Now()
		}
	})
}

// listFamily reads the keys of a family whose revision is not the one known, and
// finds those that are no manifest's.
func (l *loop) listFamily(ctx context.Context, family string) error {
	known, purged := l.known(family), l.invalid(family)
	differ := map[string]uint64{}
	cfg := jetstream.ConsumerConfig{
		Name:          l.store.names.listConsumer(l.o.Node),
		FilterSubject: kvSubject(l.bucket, model.Key(family, ">")),
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
		HeadersOnly:   true,
	}
	err := l.store.drain(ctx, kvStream(l.bucket), cfg, func(m message) {
		key := strings.TrimPrefix(m.subject, kvSubject(l.bucket, ""))
		f, name, ok := assignmentKey(key)
		if !ok || f != family {
			l.noteInvalid(key, !m.deleted())
			delete(purged, key)
			return
		}
		h, in := known[model.Key(family, name)]
		delete(known, model.Key(family, name))
		if in != !m.deleted() || (in && h.Revision != m.sequence) {
			differ[name] = m.sequence
		}
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", family, err)
	}
	for key := range purged {
		l.noteInvalid(key, false)
	}
	// What is left is in force but not in the bucket, not even as deleted.
	for _, h := range known {
		differ[h.Name] = 0
	}
	for name, sequence := range differ {
		if err := l.read(ctx, family, name, sequence); err != nil {
			return err
		}
	}

	return nil
}

// drainBatch is how many messages are asked for at once.
const drainBatch = 256

// drain gives what a consumer delivers at once, and removes it. Of several with
// one name, the last wins: whoever drained before did not come to its end.
func (s *Store) drain(ctx context.Context, stream string, cfg jetstream.ConsumerConfig, each func(message)) (err error) {
	cfg.AckPolicy, cfg.MemoryStorage, cfg.Replicas, cfg.InactiveThreshold = jetstream.AckNonePolicy, true, 1, 30*time.Second
	ctx, done := s.permitted(ctx, apiOf(stream))
	defer func() { err = done(err) }()
	consumer, err := s.js.CreateConsumer(ctx, stream, cfg)
	if errors.Is(err, jetstream.ErrConsumerExists) {
		_ = s.js.DeleteConsumer(ctx, stream, cfg.Name)
		consumer, err = s.js.CreateConsumer(ctx, stream, cfg)
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
		batch, err := consumer.Fetch(int(min(left, drainBatch)), jetstream.FetchMaxWait(requestTimeout))
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
			return fmt.Errorf("%d messages did not come within %s", left, requestTimeout)
		}
	}

	return nil
}
