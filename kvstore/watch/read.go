package watch

import (
	"context"
	"errors"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// untilCurrent calls read until it is done, with growing waits, because a replica
// that lags returns less than what is known. With last it is not called again.
func untilCurrent(ctx context.Context, read func(last bool) (done bool, err error)) error {
	const tries = 6
	wait := 20 * time.Millisecond
	for try := 1; ; try++ {
		if done, err := read(try == tries); done || err != nil {
			return err
		}
		if err := kvstore.Pause(ctx, wait); err != nil {
			return err
		}
		wait *= 2
	}
}

// read brings one key up to date: what the bucket has is in force then. A
// sequence other than zero is one the bucket is known to have for it.
func (l *loop) read(ctx context.Context, family, name string, sequence uint64) error {
	key := model.Key(family, name)
	before, known := l.table.get(key)

	return untilCurrent(ctx, func(last bool) (done bool, err error) {
		m, err := l.store.Last(ctx, kvstore.KVStream(l.bucket), kvstore.KVSubject(l.bucket, key))
		found := err == nil
		switch {
		case !found && !errors.Is(err, model.ErrNotFound):
			return false, err
		case found && m.Sequence >= sequence && (!known || !older(m, before)):
			l.table.put(key, m)
			return true, nil
		case !found && !known && sequence == 0:
			return true, nil
		// What was kept before is not worth waiting for.
		case last || !found && known && before.stream.IsZero():
			return true, l.behind(ctx, key, found)
		default:
			return false, nil
		}
	})
}

// older reports whether a message was stored before what is known: by a replica
// that lags, or in a bucket that was put back to an older state. One that was
// recreated counts from 1 again, but at a later time.
func older(m kvstore.Message, known held) bool {
	return m.Sequence < known.Revision && m.Time.Before(known.Time)
}

// behind settles a key that the bucket does not have, or only in an older state
// than known. Gone from the stream it was seen in, it is unassigned; anything
// else may be a loss of the bucket's, and the last good value stays.
func (l *loop) behind(ctx context.Context, key string, found bool) error {
	h, known := l.table.get(key)
	if !known {
		// Announced and gone again, or still on its way to the replica that answers:
		// the next audit finds it.
		l.newest = map[string]mark{}
		return nil
	}
	made, last, err := l.identity(ctx)
	if err != nil {
		return err
	}
	if found {
		l.newest = map[string]mark{}
	}
	if !found && h.stream.Equal(made) && last >= h.Revision {
		l.table.drop(key)
	} else {
		l.keep(key, h)
	}

	return nil
}

// identity asks when the stream was made and how far it is. A stream of another
// time is from now on the one that entries are seen in.
func (l *loop) identity(ctx context.Context) (time.Time, uint64, error) {
	found, err := l.store.Infos(ctx, kvstore.KVSubject(l.bucket, ">"))
	if err != nil {
		return time.Time{}, 0, err
	}
	info, err := found.Of(kvstore.KVStream(l.bucket))
	if err != nil {
		return time.Time{}, 0, err
	}
	l.table.update(func(s *model.Sync) { s.Stream = info.Created })

	return info.Created, info.State.LastSeq, nil
}

// keep leaves a key in force that the bucket lacks, and logs it once.
func (l *loop) keep(key string, h held) {
	if l.table.keep(key) {
		l.o.Log.Warn("assignment lost by the bucket, kept until the key is put or deleted",
			"node", l.o.Node, "key", key, "revision", h.Revision)
	}
}

// readInvalid looks whether a key that is no manifest's is there.
func (l *loop) readInvalid(ctx context.Context, key string) error {
	if !kvstore.IsInvalidKey(key) {
		return nil
	}
	m, err := l.store.Last(ctx, kvstore.KVStream(l.bucket), kvstore.KVSubject(l.bucket, key))
	if err != nil && !errors.Is(err, model.ErrNotFound) {
		return err
	}
	l.table.noteInvalid(key, err == nil && !m.Deleted())

	return nil
}
