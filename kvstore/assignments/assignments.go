// Package assignments is the operator's side of assignments: it puts, deletes and
// lists them, each change together with the index of its family.
package assignments

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// Bucket is the bucket of assignments.
type Bucket struct{ store *kvstore.Store }

// New returns the bucket of a fleet.
func New(s *kvstore.Store) Bucket { return Bucket{s} }

// How often a change is retried when others change the same index, and the longest
// pause between.
const (
	indexTries = 100
	indexPause = 20 * time.Millisecond
)

// Put assigns a manifest by its key and returns its revision. The value and the
// index of its family change together, so several operators at once lose nothing.
// The error wraps model.ErrInvalidName or model.ErrTooLarge.
func (s Bucket) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if err := s.store.CheckSize("manifest "+key, value); err != nil {
		return 0, fmt.Errorf("%w: put it into a bundle", err)
	}
	revision, err := s.change(ctx, key, func(ix kvstore.Index, name string) *nats.Msg {
		ix.Names[name] = model.IndexEntry{Digest: model.ContentDigest(value)}
		return kvstore.NewMsg("", value)
	})
	if err != nil {
		return 0, fmt.Errorf("put manifest %s: %w", key, err)
	}

	return revision, nil
}

// Delete unassigns a manifest and returns the revision of the deletion. It does so
// too where the bucket holds none of that name, because a node may hold one of an
// earlier bucket. The error wraps model.ErrInvalidName.
func (s Bucket) Delete(ctx context.Context, key string) (uint64, error) {
	revision, err := s.change(ctx, key, func(ix kvstore.Index, name string) *nats.Msg {
		delete(ix.Names, name)
		return kvstore.NewDeletion("")
	})
	if err != nil {
		return 0, fmt.Errorf("delete manifest %s: %w", key, err)
	}

	return revision, nil
}

// change stores what edit returns for one name, with the index as edit left it, and
// retries when another operator changed the index meanwhile.
func (s Bucket) change(ctx context.Context, key string, edit func(ix kvstore.Index, name string) *nats.Msg) (uint64, error) {
	if err := model.CheckKey(key); err != nil {
		return 0, err
	}
	family, name, _ := model.SplitKey(key)
	bucket := s.store.Names().Manifests()
	for try := 0; ; try++ {
		ix, err := s.store.ReadIndex(ctx, family)
		if errors.Is(err, kvstore.ErrBadIndex) {
			err = s.rebuild(ctx, family, ix)
		}
		if err != nil {
			return 0, err
		}
		value := edit(ix, name)
		value.Subject = kvstore.KVSubject(bucket, key)
		list, err := ix.Message(kvstore.KVSubject(bucket, model.Key(family, kvstore.IndexName)))
		if err != nil {
			return 0, err
		}
		if err := s.store.CheckSize("index of "+family, list.Data); err != nil {
			return 0, err
		}
		last, err := s.commit(ctx, value, list)
		if err == nil {
			return last - 1, nil
		}
		if !errors.Is(err, errConflict) || try == indexTries {
			return 0, err
		}
		if err := kvstore.Pause(ctx, time.Duration(rand.Int64N(int64(indexPause)))); err != nil {
			return 0, err
		}
	}
}

// Get reads an assignment; the error wraps model.ErrNotFound or
// model.ErrInvalidName.
func (s Bucket) Get(ctx context.Context, key string) (model.Entry, error) {
	if err := model.CheckKey(key); err != nil {
		return model.Entry{}, err
	}
	bucket := s.store.Names().Manifests()
	m, err := s.store.Value(ctx, kvstore.KVStream(bucket), kvstore.KVSubject(bucket, key))
	if err != nil {
		return model.Entry{}, fmt.Errorf("manifest %s: %w", key, err)
	}

	return newEntry(key, m), nil
}

// newEntry returns a revision with the digest of what runs.
func newEntry(key string, m kvstore.Message) model.Entry {
	e := kvstore.NewEntry(key, m)
	if !e.Deleted {
		e.Digest = model.ContentDigest(e.Value)
	}

	return e
}

// rebuild adds to an index what the bucket has of its family.
func (s Bucket) rebuild(ctx context.Context, family string, ix kvstore.Index) error {
	listed, err := s.List(ctx, family)
	for _, l := range listed {
		ix.Names[l.Name] = model.IndexEntry{Revision: l.Revision, Digest: l.Digest}
	}

	return err
}
