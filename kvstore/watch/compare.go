package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// compareAll compares families with the bucket, and reads again what differs. It
// returns the errors of those where that failed.
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
	empty := len(found) == 0
	for _, p := range l.parts {
		// What another family has is in the bucket too, as far as is known.
		empty = empty && (p.newest == mark{} || slices.Contains(due, p))
	}
	for _, p := range due {
		if failed[p] != nil {
			continue
		}
		if err := l.compare(ctx, p, found[p], empty); err != nil {
			p.newest = mark{}
			failed[p] = l.explained(err)
		}
	}

	return failed
}

// isThere reports whether there is a bucket to compare with. Without one families have nothing
// but what they had.
func (l *loop) isThere(ctx context.Context, due []*part, failed map[*part]error) bool {
	there, err := l.store.Has(ctx, l.bucket.stream(), l.bucket.subject(">"))
	for _, p := range due {
		switch {
		case err != nil:
			failed[p] = l.explained(err)
		case !there:
			l.keepAll(ctx, p, l.table.of(p.family))
		}
	}

	return there && err == nil
}

// heads reads the newest message of each family that has one, all at once: one
// that gets no answer must not keep the others waiting for theirs.
func (l *loop) heads(ctx context.Context, due []*part, failed map[*part]error) (found map[*part]kvstore.Message) {
	found = map[*part]kvstore.Message{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, p := range due {
		all.Go(func() {
			m, err := l.store.Last(ctx, l.bucket.stream(), l.bucket.subject(model.Key(p.family, ">")))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				found[p] = m
			case errors.Is(err, kvstore.ErrUnreadable):
				found[p] = kvstore.Message{Unreadable: true}
			case !errors.Is(err, model.ErrNotFound):
				failed[p] = l.explained(err)
			}
		})
	}
	all.Wait()

	return found
}

// explained names the remedy where there is no bucket, in the same words for each family.
func (l *loop) explained(err error) error {
	if !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, model.ErrNotFound) {
		return err
	}

	return fmt.Errorf("%w, or starting just now: if it stays so, run `%s`", kvstore.ErrNotProvisioned, l.store.Names().Init())
}

// compare brings a family up to date: what the server lists and what is in force.
// The newest message tells whether anything was put since the last time; that
// something is gone, or was not listed then, the list alone tells, and which key it
// is when its headers cannot be read.
func (l *loop) compare(ctx context.Context, p *part, newest kvstore.Message, empty bool) error {
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
	if empty && len(listed.Subjects) == 0 {
		l.keepAll(ctx, p, known)
		return nil
	}
	changed := p.newest != markOf(newest) || newest.Sequence == 0
	p.newest = markOf(newest)
	if changed {
		p.gone = map[string]bool{}
	}
	sequences := l.due(p, known, listed, changed)
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
	if listed.Last < newest.Sequence {
		p.newest = mark{} // the list is of a server that lags
	}

	return nil
}

// due returns the keys of a family that must be read: all that are listed or in
// force when something was put, else those that are only one of both.
func (l *loop) due(p *part, known map[string]held, listed kvstore.Listing, changed bool) map[string]uint64 {
	keys := map[string]uint64{}
	for subject := range listed.Subjects {
		key := l.bucket.key(subject)
		if _, in := known[key]; changed || !in && !p.gone[key] {
			keys[key] = 0
		}
		delete(known, key)
	}
	for key := range known {
		keys[key] = 0
	}
	for key := range l.table.unusable(p.family) {
		if !listed.Subjects[l.bucket.subject(key)] {
			l.table.noteInvalid(key, false)
			l.table.noteUnreadable(key, false)
		}
	}

	return keys
}

// keepAll leaves a family in force when the bucket has nothing at all of any:
// nobody unassigns so, each deletion leaves a mark.
func (l *loop) keepAll(ctx context.Context, p *part, known map[string]held) {
	p.newest, p.gone = mark{}, nil
	for key, h := range known {
		l.keep(ctx, key, h)
	}
}

// list lists the subjects of the bucket that match a filter. A stream of another
// time is from now on the one that entries are seen in.
func (l *loop) list(ctx context.Context, filter string) (kvstore.Listing, error) {
	listed, err := l.store.Subjects(ctx, l.bucket.stream(), filter)
	if err == nil {
		l.table.update(func(s *model.Sync) { s.Stream = listed.Created })
	}

	return listed, err
}

// missing are keys, and since when they are missing.
type missing map[string]time.Time

// gone notes when a key was missing first, and reports whether that is long enough
// ago.
func (m missing) gone(key string, now time.Time, enough time.Duration) bool {
	first, noted := m[key]
	if !noted {
		m[key] = now
	}

	return noted && now.Sub(first) >= enough
}
