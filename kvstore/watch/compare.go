package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// compareAll compares families with the bucket, and reads again what differs. It
// returns the errors of those where that failed.
func (l *loop) compareAll(ctx context.Context, due []*part) map[string]error {
	if err := l.store.Away(); err != nil {
		failed := map[string]error{}
		for _, p := range due {
			failed[p.family] = err
		}
		return failed
	}
	if _, known := l.table.all(); len(known.Known) == 0 || known.Stream.IsZero() {
		// Without it all works, but that what is gone from the bucket stays in force.
		if _, _, err := l.identity(ctx); err != nil {
			l.o.Log.Warn("age of the bucket is unknown", "node", l.o.Node, "error", err)
		}
	}
	found, failed := l.heads(ctx, due)
	empty := len(found) == 0
	for _, p := range l.parts {
		// What another family has is in the bucket too, as far as is known.
		empty = empty && (l.newest[p.family] == mark{} || slices.Contains(due, p))
	}
	for _, p := range due {
		if failed[p.family] != nil {
			continue
		}
		var err error
		if empty {
			err = l.keepAll(ctx, p.family)
		} else {
			err = l.compare(ctx, p.family, found[p.family])
		}
		if err != nil {
			failed[p.family] = err
		}
	}

	return failed
}

// heads reads the newest message of each family that has one, all at once: one
// that gets no answer must not keep the others waiting for theirs.
func (l *loop) heads(ctx context.Context, due []*part) (found map[string]kvstore.Message, failed map[string]error) {
	found, failed = map[string]kvstore.Message{}, map[string]error{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, p := range due {
		all.Go(func() {
			m, err := l.store.Last(ctx, kvstore.KVStream(l.bucket), kvstore.KVSubject(l.bucket, model.Key(p.family, ">")))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				found[p.family] = m
			case errors.Is(err, nats.ErrNoResponders):
				failed[p.family] = fmt.Errorf("%w, or starting just now: if it stays so, run `%s`: %w", kvstore.ErrNotProvisioned, l.store.Names().Init(), err)
			case !errors.Is(err, model.ErrNotFound):
				failed[p.family] = err
			}
		})
	}
	all.Wait()

	return found, failed
}

// keepAll leaves a family in force when the bucket has nothing at all of any:
// nobody unassigns so, each deletion leaves a mark.
func (l *loop) keepAll(ctx context.Context, family string) error {
	delete(l.newest, family)
	known := l.table.of(family)
	if len(known) == 0 {
		return nil
	}
	for key, h := range known {
		l.keep(key, h)
	}
	_, _, err := l.identity(ctx)

	return err
}

// compare reads a family again unless its newest message is the one of the last
// time; then no other can have come.
func (l *loop) compare(ctx context.Context, family string, newest kvstore.Message) error {
	before := l.newest[family]
	if newest.Sequence == 0 && len(l.table.of(family)) == 0 || newest.Sequence > 0 && before == markOf(newest) {
		return nil
	}
	if newest.Sequence <= before.sequence && before.sequence > 0 {
		// It went back: perhaps another stream, which must be known before its entries are.
		if _, _, err := l.identity(ctx); err != nil {
			return err
		}
	}
	names, err := l.candidates(ctx, family, newest)
	if err != nil {
		return err
	}
	if newest.Sequence > 0 {
		l.newest[family] = markOf(newest)
	}
	for name, sequence := range names {
		if err := l.read(ctx, family, name, sequence); err != nil {
			delete(l.newest, family)
			return err
		}
	}

	return nil
}

// candidates returns the names a family may have, each with a sequence that the
// bucket is known to have for it, or zero: those in force, those of the index,
// and that of the newest message.
func (l *loop) candidates(ctx context.Context, family string, newest kvstore.Message) (map[string]uint64, error) {
	names := map[string]uint64{}
	for _, h := range l.table.of(family) {
		names[h.Name] = 0
	}
	ix, err := l.store.ReadIndex(ctx, family)
	switch {
	case errors.Is(err, kvstore.ErrBadIndex):
		l.o.Log.Warn("index ignored", "node", l.o.Node, "error", err)
	case err != nil:
		return nil, err
	}
	for name := range ix.Names {
		names[name] = 0
	}
	key := strings.TrimPrefix(newest.Subject, kvstore.KVSubject(l.bucket, ""))
	if f, name, ok := kvstore.AssignmentKey(key); ok && f == family {
		names[name] = newest.Sequence
	} else if newest.Sequence > 0 {
		l.table.noteInvalid(key, !newest.Deleted())
	}

	return names, nil
}
