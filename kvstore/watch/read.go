package watch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// A read that returns less than what is known is repeated so often, with growing
// waits, because a replica may lag.
const (
	lagTries = 6
	lagPause = 20 * time.Millisecond
)

// read brings one key up to date: what the bucket has is in force then. A
// sequence other than zero is one the bucket is known to have for it.
func (l *loop) read(ctx context.Context, family, name string, sequence uint64) error {
	key := model.Key(family, name)
	before, known := l.held(key)
	wait := lagPause
	for try := 1; ; try++ {
		m, err := l.store.Last(ctx, kvstore.KVStream(l.bucket), kvstore.KVSubject(l.bucket, key))
		if err != nil && !errors.Is(err, model.ErrNotFound) {
			return err
		}
		found := err == nil
		if found && m.Sequence >= sequence && (!known || !older(m, before)) {
			l.take(family, name, m)
			return nil
		}
		if !found && !known && sequence == 0 {
			return nil
		}
		// What was kept before is not worth waiting for.
		if try == lagTries || (!found && known && before.stream.IsZero()) {
			return l.behind(ctx, key, found)
		}
		if err := kvstore.Pause(ctx, wait); err != nil {
			return err
		}
		wait *= 2
	}
}

// older reports whether a message was stored before what is known: by a replica
// that lags, or in a bucket that was put back to an older state. One that was
// recreated counts from 1 again, but at a later time.
func older(m kvstore.Message, known held) bool {
	return m.Sequence < known.Revision && m.Time.Before(known.Time)
}

// take puts a message in force, which may be the end of its key.
func (l *loop) take(family, name string, m kvstore.Message) {
	key := model.Key(family, name)
	l.mu.Lock()
	defer l.mu.Unlock()
	before, known := l.entries[key]
	if at, kept := slices.BinarySearch(l.sync.Kept, key); kept {
		l.sync.Kept = slices.Delete(slices.Clone(l.sync.Kept), at, at+1)
	}
	if m.Deleted() {
		delete(l.entries, key)
		if known {
			l.changed = append(l.changed, key)
		}

		return
	}
	e := kvstore.NewEntry(key, m)
	e.Value = nil // who is woken reads it
	l.entries[key] = held{Entry: e, stream: l.sync.Stream}
	if !known || before.Revision != m.Sequence || !before.Time.Equal(m.Time) {
		l.changed = append(l.changed, key)
	}
}

// behind settles a key that the bucket does not have, or only in an older state
// than known. Gone from the stream it was seen in, it is unassigned; anything
// else may be a loss of the bucket's, and the last good value stays.
func (l *loop) behind(ctx context.Context, key string, found bool) error {
	h, known := l.held(key)
	if !known {
		// Announced and gone again, or still on its way to the replica that answers:
		// the next audit will tell.
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
		l.drop(key)
	} else {
		l.keep(key)
	}

	return nil
}

// identity asks when the stream was made and how far it is. A stream of another
// time is from now on the one that entries are seen in.
func (l *loop) identity(ctx context.Context) (time.Time, uint64, error) {
	info, err := l.store.StreamInfo(ctx, kvstore.KVStream(l.bucket), kvstore.KVSubject(l.bucket, ">"))
	if err != nil {
		return time.Time{}, 0, err
	}
	l.update(func(s *model.Sync) { s.Stream = info.Created })

	return info.Created, info.State.LastSeq, nil
}

// held returns what is in force for a key.
func (l *loop) held(key string) (held, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.entries[key]

	return h, ok
}

// drop unassigns a key.
func (l *loop) drop(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, key)
	l.changed = append(l.changed, key)
}

// keep leaves a key in force and logs it. It counts as seen in no stream until it
// is read again, so it is not taken away by what the bucket lacks.
func (l *loop) keep(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.entries[key]
	l.entries[key] = held{Entry: h.Entry}
	if at, found := slices.BinarySearch(l.sync.Kept, key); !found {
		l.sync.Kept = slices.Insert(slices.Clone(l.sync.Kept), at, key)
		l.o.Log.Warn("assignment lost by the bucket, kept until the key is put or deleted",
			"node", l.o.Node, "key", key, "revision", h.Revision)
	}
}
