package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// compareAll compares families with the bucket and reads the keys that differ. It returns the errors
// of the failed families.
func (l *loop) compareAll(ctx context.Context, due []*part) map[*part]error {
	failed := map[*part]error{}
	if err := l.store.Away(); err != nil {
		for _, p := range due {
			failed[p] = err
		}
		return failed
	}
	if l.bucket.isOptional && !l.isThere(ctx, due, failed) {
		return failed
	}
	found := l.heads(ctx, due, failed)
	for _, p := range due {
		if failed[p] != nil {
			continue
		}
		if err := l.compare(ctx, p, found[p]); err != nil {
			p.newest = mark{}
			failed[p] = l.explained(err)
		}
	}

	return failed
}

// isThere reports whether the optional bucket exists. If it does not, the families keep their known
// entries.
func (l *loop) isThere(ctx context.Context, due []*part, failed map[*part]error) bool {
	there, err := l.store.Has(ctx, l.bucket.stream(), l.bucket.subject(">"))
	for _, p := range due {
		switch {
		case err != nil:
			failed[p] = l.explained(err)
		case !there:
			p.newest, p.gone = mark{}, nil
			for key, h := range l.table.of(p.family) {
				l.keep(ctx, key, h)
			}
		}
	}

	return there && err == nil
}

// heads reads the newest message of each family. It reads all of them concurrently, because one
// request without an answer must not delay the others.
func (l *loop) heads(ctx context.Context, due []*part, failed map[*part]error) (found map[*part]kvstore.Message) {
	found = map[*part]kvstore.Message{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, p := range due {
		all.Go(func() {
			m, isFound, err := l.store.Find(ctx, l.bucket.stream(), l.bucket.subject(model.Key(p.family, ">")))
			mu.Lock()
			defer mu.Unlock()
			if isFound {
				found[p] = m
			} else if err != nil {
				failed[p] = l.explained(err)
			}
		})
	}
	all.Wait()

	return found
}

// explained adds the remedy to the error of a missing bucket. The text is the same for each family.
func (l *loop) explained(err error) error {
	if !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, model.ErrNotFound) {
		return err
	}

	return fmt.Errorf("%w, or starting just now: if it stays so, run `%s`", model.ErrNotProvisioned, l.store.Names.Run("fleet init"))
}

// compare updates a family. If the newest message is a new one, compare reads every listed and every
// active key. Otherwise it reads only the keys that are either listed or active, but not both. It also
// needs the list to find purged keys, and keys with unreadable headers.
func (l *loop) compare(ctx context.Context, p *part, newest kvstore.Message) error {
	known := l.table.of(p.family)
	_, state := l.table.all()
	if newest.Sequence == 0 && !newest.Unreadable && len(known) == 0 && len(l.table.unusable(p.family)) == 0 && !state.Stream.IsZero() {
		p.newest, p.gone = mark{}, nil
		return nil
	}
	listed, err := l.list(ctx, l.bucket.subject(model.Key(p.family, ">")))
	if err != nil {
		return err
	}
	changed := p.newest != markOf(newest) || newest.Sequence == 0
	p.newest = markOf(newest)
	if changed {
		p.gone = map[string]bool{}
	}
	sequences := l.due(ctx, p, known, listed, changed)
	if key := l.bucket.key(newest.Subject); newest.Sequence > 0 && changed {
		sequences[key] = newest.Sequence
	}
	if err := l.readKeys(ctx, sequences); err != nil {
		return err
	}
	for key := range sequences {
		if _, in := l.table.get(key); !in {
			p.gone[key] = true
		}
	}
	p.last = listed.Last
	if listed.Last < newest.Sequence {
		p.newest = mark{} // a lagging server answered the list request
	}

	return nil
}

// due returns the keys of a family that must be read: all listed and active keys after a change,
// otherwise the keys that are only listed or only active. It keeps active keys if the bucket lost all
// its messages.
func (l *loop) due(ctx context.Context, p *part, known map[string]held, listed kvstore.Listing, changed bool) map[string]uint64 {
	keys := map[string]uint64{}
	for subject := range listed.Subjects {
		key := l.bucket.key(subject)
		if _, in := known[key]; changed || !in && !p.gone[key] {
			keys[key] = 0
		}
		delete(known, key)
	}
	for key, h := range known {
		if p.isEmptied(h, listed) {
			l.keep(ctx, key, h)
		} else {
			keys[key] = 0
		}
	}
	for key := range l.table.unusable(p.family) {
		if !listed.Subjects[l.bucket.subject(key)] {
			l.table.noteInvalid(key, false)
			l.table.noteUnreadable(key, false)
		}
	}

	return keys
}

// list lists the subjects of the bucket that match a filter, and records the creation time of the
// stream.
func (l *loop) list(ctx context.Context, filter string) (kvstore.Listing, error) {
	listed, err := l.store.Subjects(ctx, l.bucket.stream(), filter)
	if err == nil {
		l.table.update(func(s *model.Sync) { s.Stream = listed.Created })
	}

	return listed, err
}

// missing maps keys that the bucket lacks to the time when this was first seen.
type missing map[string]time.Time

// gone records a missing key and reports whether it has been missing for long enough.
func (m missing) gone(key string, now time.Time, enough time.Duration) bool {
	first, noted := m[key]
	if !noted {
		m[key] = now
	}

	return noted && now.Sub(first) >= enough
}

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
	m, found, err := l.store.Find(ctx, l.bucket.stream(), l.bucket.subject(key))
	if err != nil {
		return false, err
	}
	l.table.noteUnreadable(key, m.Unreadable)
	switch {
	case m.Unreadable:
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
// which it was seen, and that stream has reached its revision and did not lose all its messages. In
// every other case the bucket may have lost the key, and the last good value stays active.
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
	case found || !h.stream.Equal(listed.Created) || listed.Last < h.Revision || l.parts.of(key).isEmptied(h, listed):
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
	m, found, err := l.store.Find(ctx, l.bucket.stream(), l.bucket.subject(key))
	if err == nil {
		l.table.noteInvalid(key, found && !m.Deleted())
	}

	return err
}
