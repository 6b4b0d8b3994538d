package watch

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// readKeys reads keys, including invalid ones. A nonzero sequence was announced for its key. readKeys
// waits for a lagging replica, at most once for all keys.
func (l *loop) readKeys(ctx context.Context, sequences map[string]uint64) error {
	rest := maps.Clone(sequences)

	return kvstore.UntilCurrent(ctx, func(last bool) (bool, error) {
		for key, sequence := range rest {
			done, err := l.tryKey(ctx, key, sequence, last)
			if err != nil {
				return false, err
			}
			if done {
				delete(rest, key)
			}
		}
		return len(rest) == 0, nil
	})
}

// tryKey reads one key. It returns done=false if a lagging replica answered and the caller should try
// again. With last it is always done.
func (l *loop) tryKey(ctx context.Context, key string, sequence uint64, last bool) (done bool, err error) {
	if !l.bucket.isKey(key) {
		return true, l.readInvalid(ctx, key)
	}
	before, known := l.table.get(key)
	m, err := l.store.Last(ctx, l.bucket.stream(), l.bucket.subject(key))
	found, unreadable := err == nil, errors.Is(err, kvstore.ErrUnreadable)
	if !found && !unreadable && !errors.Is(err, model.ErrNotFound) {
		return false, err
	}
	l.table.noteUnreadable(key, unreadable)
	switch {
	case unreadable:
		delete(l.missing, key)
		return last || sequence == 0, nil // an announced sequence is readable, so a replica lags
	case found && m.Sequence >= sequence && (!known || !older(m, before)):
		l.put(key, m)
		return true, nil
	case !found && !known && sequence == 0:
		return true, nil
	case last && found && (!known || !older(m, before)):
		// The announcement was wrong, or the audit will find the message.
		l.put(key, m)
		l.parts.of(key).newest = mark{}
		return true, nil
	// A kept entry may be gone for good, so do not wait for it.
	case last || !found && known && before.stream.IsZero():
		return true, l.behind(ctx, key, found)
	default:
		return false, nil
	}
}

// put activates the message of a key. If the message shows that the bucket was recreated or restored,
// put also schedules a comparison.
func (l *loop) put(key string, m kvstore.Message) {
	if slices.ContainsFunc(l.parts, func(p *part) bool { return p.newest.isLost(m) }) {
		l.parts.soon(l.spread())
	}
	delete(l.missing, key)
	l.table.put(key, m)
}

// ahead is the largest accepted clock difference between servers and this node.
const ahead = 24 * time.Hour

// older reports whether a message was stored before the known entry, because a replica lags or the
// bucket was restored. A recreated bucket counts from 1 again, but its messages have later times. A
// known entry with a time in the future proves nothing: the clock of a server was wrong, or the server
// lied.
func older(m kvstore.Message, known held) bool {
	return m.Sequence < known.Revision && m.Time.Before(known.Time) && known.Time.Before(time.Now().Add(ahead))
}

// behind decides about a key that the bucket lacks, or has only in an older version. A purge by an
// administrator leaves no marker. So a key is unassigned if it is missing twice from the stream in
// which it was seen, and that stream has reached its revision. In every other case the bucket may have
// lost the key, and the last good value stays active.
func (l *loop) behind(ctx context.Context, key string, found bool) error {
	h, known := l.table.get(key)
	if !known {
		// The key was deleted again, or has not reached this replica. The next audit finds it.
		l.parts.of(key).newest = mark{}
		return nil
	}
	subject := l.bucket.subject(key)
	listed, err := l.list(ctx, subject)
	if err != nil {
		return err
	}
	switch {
	case found || !h.stream.Equal(listed.Created) || listed.Last < h.Revision:
		if found {
			l.parts.of(key).newest = mark{}
		}
		l.keep(ctx, key, h)
	case listed.Subjects[subject]:
		l.parts.of(key).newest = mark{} // a lagging replica answered
	case l.missing.gone(key, time.Now(), l.o.Gone):
		delete(l.missing, key)
		l.table.drop(key)
	}

	return nil
}

// keep keeps a key active that the bucket lacks, and logs it once.
func (l *loop) keep(ctx context.Context, key string, h held) {
	delete(l.missing, key)
	if l.table.keep(key) {
		l.kept.Log(ctx, l.o.Log, slog.LevelWarn, strings.TrimSuffix(l.bucket.values, "s")+" lost by the bucket, kept until the key is put or deleted",
			"node", l.o.Node, "key", key, "revision", h.Revision)
	}
}

// readInvalid checks whether an invalid key exists in the bucket.
func (l *loop) readInvalid(ctx context.Context, key string) error {
	m, err := l.store.Last(ctx, l.bucket.stream(), l.bucket.subject(key))
	unreadable := errors.Is(err, kvstore.ErrUnreadable)
	if err != nil && !unreadable && !errors.Is(err, model.ErrNotFound) {
		return err
	}
	l.table.noteInvalid(key, unreadable || err == nil && !m.Deleted())

	return nil
}
