package watch

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
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
		l.o.Log.Warn("cannot list keys, unindexed names are seen when they change", "node", l.o.Node, "error", failed)
	}
	l.listAt = time.Now().Add(time.Duration((1 - l.o.Rand()/4) * float64(l.o.ListEvery)))
	l.table.update(func(s *model.Sync) {
		if s.ListErr = failed; failed == nil {
			s.Listed = time.Now()
		}
	})
}

// listFamily reads the keys of a family whose revision is not the one known, and
// finds those that are no manifest's.
func (l *loop) listFamily(ctx context.Context, family string) error {
	known, purged := l.table.of(family), l.table.invalid(family)
	differ := map[string]uint64{}
	cfg := jetstream.ConsumerConfig{
		Name:          l.store.Names().ListConsumer(l.o.Node),
		FilterSubject: kvstore.KVSubject(l.bucket, model.Key(family, ">")),
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
		HeadersOnly:   true,
	}
	err := l.store.Drain(ctx, kvstore.KVStream(l.bucket), cfg, func(m kvstore.Message) {
		key := strings.TrimPrefix(m.Subject, kvstore.KVSubject(l.bucket, ""))
		f, name, ok := kvstore.AssignmentKey(key)
		if !ok || f != family {
			l.table.noteInvalid(key, !m.Deleted())
			delete(purged, key)
			return
		}
		h, in := known[model.Key(family, name)]
		delete(known, model.Key(family, name))
		if in != !m.Deleted() || (in && h.Revision != m.Sequence) {
			differ[name] = m.Sequence
		}
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", family, err)
	}
	for key := range purged {
		l.table.noteInvalid(key, false)
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
