package kvstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// How often a change of an index is tried again when others change it too, and
// how long it waits between.
const (
	indexTries = 100
	indexPause = 20 * time.Millisecond
)

// Put assigns a manifest by its key and gives its revision. The value and the index of its family change together;
// several operators at once lose nothing. The error wraps model.ErrInvalidName or
// model.ErrTooLarge; then a bundle is the way.
func (s *Store) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if err := s.checkSize("manifest "+key, value); err != nil {
		return 0, fmt.Errorf("%w: put it into a bundle", err)
	}
	revision, err := s.change(ctx, key, func(ix index, name string) *nats.Msg {
		ix.names[name] = model.IndexEntry{Digest: contentDigest(value)}
		return newMsg("", value)
	})
	if err != nil {
		return 0, fmt.Errorf("put manifest %s: %w", key, err)
	}

	return revision, nil
}

// Delete unassigns a manifest and gives the revision of its end. It does
// so too where the bucket holds none of that name, because a node may hold one
// from before the bucket was made anew. The error wraps model.ErrInvalidName.
func (s *Store) Delete(ctx context.Context, key string) (uint64, error) {
	revision, err := s.change(ctx, key, func(ix index, name string) *nats.Msg {
		delete(ix.names, name)
		m := newMsg("", nil)
		m.Header.Set("KV-Operation", "DEL")

		return m
	})
	if err != nil {
		return 0, fmt.Errorf("delete manifest %s: %w", key, err)
	}

	return revision, nil
}

// change stores what edit gives for one name, with the index as edit left it,
// and tries again when somebody else changed the index meanwhile.
func (s *Store) change(ctx context.Context, key string, edit func(ix index, name string) *nats.Msg) (uint64, error) {
	if err := model.CheckKey(key); err != nil {
		return 0, err
	}
	family, name, _ := model.SplitKey(key)
	bucket := s.names.Manifests()
	for try := 0; ; try++ {
		ix, err := s.readIndex(ctx, family)
		if errors.Is(err, errBadIndex) {
			ix, err = s.rebuildIndex(ctx, family, ix)
		}
		if err != nil {
			return 0, err
		}
		value := edit(ix, name)
		value.Subject = kvSubject(bucket, key)
		list, err := ix.message(kvSubject(bucket, model.Key(family, IndexName)))
		if err != nil {
			return 0, err
		}
		if err := s.checkSize("index of "+family, list.Data); err != nil {
			return 0, err
		}
		last, err := s.commit(ctx, value, list)
		if err == nil {
			return last - 1, nil
		}
		if !errors.Is(err, errConflict) || try == indexTries {
			return 0, err
		}
		if err := pause(ctx, time.Duration(rand.Int64N(int64(indexPause)))); err != nil {
			return 0, err
		}
	}
}

// pause waits for d, or until the context ends and gives its error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Get reads an assignment in force; the error wraps model.ErrNotFound or
// model.ErrInvalidName.
func (s *Store) Get(ctx context.Context, key string) (model.Entry, error) {
	if err := model.CheckKey(key); err != nil {
		return model.Entry{}, err
	}
	bucket := s.names.Manifests()
	m, err := s.last(ctx, kvStream(bucket), kvSubject(bucket, key))
	if err == nil && m.deleted() {
		err = model.ErrNotFound
	}
	if err != nil {
		return model.Entry{}, fmt.Errorf("manifest %s: %w", key, err)
	}

	return newEntry(key, m), nil
}

func newEntry(key string, m message) model.Entry {
	family, name, _ := model.SplitKey(key)

	return model.Entry{Key: key, Family: family, Name: name, Revision: m.sequence, Value: m.data, Time: m.time, Deleted: m.deleted()}
}
