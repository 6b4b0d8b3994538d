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

// readKeys brings keys up to date, also those that are no manifests'. A sequence other than
// zero is one that was announced for its key. A replica that lags is waited for once for all.
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

// tryKey brings one key up to date, unless the replica that answers lags: then it is not done,
// and to be tried again. With last it is done in any case.
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
		return last || sequence == 0, nil // what was announced with a sequence can be read
	case found && m.Sequence >= sequence && (!known || !older(m, before)):
		l.put(key, m)
		return true, nil
	case !found && !known && sequence == 0:
		return true, nil
	case last && found && (!known || !older(m, before)):
		// What was announced is not there: the announcement is wrong, or the audit finds it.
		l.put(key, m)
		l.parts.of(key).newest = mark{}
		return true, nil
	// What was kept before is not worth waiting for.
	case last || !found && known && before.stream.IsZero():
		return true, l.behind(ctx, key, found)
	default:
		return false, nil
	}
}

// put puts in force what the bucket has for a key. Where that shows another bucket than
// before, what else it has, and what it lost, is looked at soon.
func (l *loop) put(key string, m kvstore.Message) {
	if slices.ContainsFunc(l.parts, func(p *part) bool { return p.newest.isLost(m) }) {
		l.parts.soon(l.spread())
	}
	delete(l.missing, key)
	l.table.put(key, m)
}

// ahead is how far the clocks of servers and of this node may be apart.
const ahead = 24 * time.Hour

// older reports whether a message was stored before what is known: by a replica
// that lags, or in a bucket that was put back to an older state. One that was
// recreated counts from 1 again, but at a later time. What is known from the future
// proves nothing: the clock of a server was wrong, or it lied.
func older(m kvstore.Message, known held) bool {
	return m.Sequence < known.Revision && m.Time.Before(known.Time) && known.Time.Before(time.Now().Add(ahead))
}

// behind settles a key that the bucket does not have, or only in an older state
// than known. An administrator's purge leaves no mark: missing twice, in the stream
// that it was seen in and that is at least as far, it is unassigned. Anything else may
// be a loss of the bucket's, and the last good value stays.
func (l *loop) behind(ctx context.Context, key string, found bool) error {
	h, known := l.table.get(key)
	if !known {
		// Announced and gone again, or still on its way to the replica that answers:
		// the next audit finds it.
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
		l.parts.of(key).newest = mark{} // the replica that answered lags
	case l.missing.gone(key, time.Now(), l.o.Gone):
		delete(l.missing, key)
		l.table.drop(key)
	}

	return nil
}

// keep leaves a key in force that the bucket lacks, and logs it once.
func (l *loop) keep(ctx context.Context, key string, h held) {
	delete(l.missing, key)
	if l.table.keep(key) {
		l.kept.Log(ctx, l.o.Log, slog.LevelWarn, strings.TrimSuffix(l.bucket.values, "s")+" lost by the bucket, kept until the key is put or deleted",
			"node", l.o.Node, "key", key, "revision", h.Revision)
	}
}

// readInvalid looks whether a key that is no manifest's is there.
func (l *loop) readInvalid(ctx context.Context, key string) error {
	m, err := l.store.Last(ctx, l.bucket.stream(), l.bucket.subject(key))
	unreadable := errors.Is(err, kvstore.ErrUnreadable)
	if err != nil && !unreadable && !errors.Is(err, model.ErrNotFound) {
		return err
	}
	l.table.noteInvalid(key, unreadable || err == nil && !m.Deleted())

	return nil
}
