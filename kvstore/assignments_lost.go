package kvstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterfleet/muster/model"
)

// removalGrace is the time in which nodes apply a removal.
const removalGrace = time.Minute

// Lost returns the keys that the bucket lost, of keys with the revisions that reachable nodes run: the bucket has neither
// a value nor a removal, or it has a removal from before that revision, which nodes ignore. Lost reads each key from the
// server and ignores invalid keys.
func (s Assignments) Lost(ctx context.Context, revisions map[string]uint64) (map[string]bool, error) {
	bucket, lost := s.store.Names().Manifests(), map[string]bool{}
	for key, revision := range revisions {
		if model.CheckKey(key) != nil {
			continue
		}
		m, err := s.store.Last(ctx, KVStream(bucket), KVSubject(bucket, key))
		switch {
		case errors.Is(err, model.ErrNotFound):
			lost[key] = true
		case errors.Is(err, model.ErrUnusable): // the key is stored
		case err != nil:
			return nil, fmt.Errorf("check for lost manifests: %w", err)
		case isOutdated(m, revision, time.Now()):
			lost[key] = true
		}
	}

	return lost, nil
}

// isOutdated reports whether a message is a removal that nodes ignored, because they run a later revision.
func isOutdated(m Message, revision uint64, now time.Time) bool {
	return m.Deleted() && !m.Forged && m.Sequence < revision && now.Sub(m.Time) > removalGrace
}

// Name returns a name of the bucket for messages.
func (s Assignments) Name() string { return "bucket " + s.store.Names().Manifests() }

// Age returns the creation time of the bucket and its last revision. A new bucket counts from 1. The error wraps
// model.ErrNotFound if there is no bucket.
func (s Assignments) Age(ctx context.Context) (created time.Time, last uint64, err error) {
	bucket := s.store.Names().Manifests()

	return s.store.StreamAge(ctx, KVStream(bucket), KVSubject(bucket, ">"))
}

// StoredAt returns the time at which a revision was stored. The error wraps model.ErrNotFound if it is not there.
func (s Assignments) StoredAt(ctx context.Context, revision uint64) (time.Time, error) {
	bucket := s.store.Names().Manifests()

	return s.store.StoredAt(ctx, KVStream(bucket), KVSubject(bucket, ">"), revision)
}
