package kvstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// compareAll compares each family with the bucket, and reads again what differs.
func (l *loop) compareAll(ctx context.Context) error {
	switch {
	case l.store.nc.IsClosed():
		return nats.ErrConnectionClosed
	case !l.store.nc.IsConnected():
		return nats.ErrDisconnected
	}
	if _, sync := l.Entries(); !l.complete || sync.Stream.IsZero() {
		// Without it all works, but that what is gone from the bucket stays in force.
		if _, _, err := l.identity(ctx); err != nil {
			l.o.Log.Warn("age of the bucket is not known", "node", l.o.Node, "error", err)
		}
	}
	found := map[string]message{}
	for _, family := range l.families {
		m, err := l.store.last(ctx, kvStream(l.bucket), kvSubject(l.bucket, Key(family, ">")))
		switch {
		case err == nil:
			found[family] = m
		case errors.Is(err, nats.ErrNoResponders):
			return fmt.Errorf("%w, or starting just now: if it stays so, run `muster fleet init`: %w", ErrNotProvisioned, err)
		case !errors.Is(err, model.ErrNotFound):
			return err
		}
	}
	if len(found) == 0 {
		return l.keepAll(ctx)
	}
	for _, family := range l.families {
		if err := l.compare(ctx, family, found[family]); err != nil {
			return err
		}
	}

	return nil
}

// keepAll leaves everything in force when the bucket has nothing at all of it:
// nobody unassigns so, each deletion leaves a mark.
func (l *loop) keepAll(ctx context.Context) error {
	l.newest = map[string]mark{}
	entries, _ := l.Entries()
	if len(entries) == 0 {
		return nil
	}
	for key := range entries {
		l.keep(key)
	}
	_, _, err := l.identity(ctx)

	return err
}

// compare reads a family again unless its newest message is the one of the last
// time; then no other can have come.
func (l *loop) compare(ctx context.Context, family string, newest message) error {
	before := l.newest[family]
	if newest.sequence == 0 && len(l.known(family)) == 0 || newest.sequence > 0 && before == markOf(newest) {
		return nil
	}
	if newest.sequence <= before.sequence && before.sequence > 0 {
		// It went back: perhaps another stream, which must be known before its entries are.
		if _, _, err := l.identity(ctx); err != nil {
			return err
		}
	}
	names, err := l.candidates(ctx, family, newest)
	if err != nil {
		return err
	}
	if newest.sequence > 0 {
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

// candidates gives the names a family may have, each with a sequence that the
// bucket is known to have for it, or zero: those in force, those of the index,
// and that of the newest message.
func (l *loop) candidates(ctx context.Context, family string, newest message) (map[string]uint64, error) {
	names := map[string]uint64{}
	for _, h := range l.known(family) {
		names[h.Name] = 0
	}
	ix, err := l.store.readIndex(ctx, family)
	switch {
	case errors.Is(err, errBadIndex):
		l.o.Log.Warn("index is ignored", "node", l.o.Node, "error", err)
	case err != nil:
		return nil, err
	}
	for name := range ix.names {
		names[name] = 0
	}
	key := strings.TrimPrefix(newest.subject, kvSubject(l.bucket, ""))
	if f, name, ok := SplitKey(key); ok && f == family && CheckName(name) == nil {
		names[name] = newest.sequence
	}

	return names, nil
}
