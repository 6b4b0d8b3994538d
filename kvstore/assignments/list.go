package assignments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// List returns the assignments of some families, or of all for none, in the order
// of their keys and without values, also those that no index names. The error wraps
// model.ErrInvalidName.
func (s Bucket) List(ctx context.Context, families ...string) ([]model.Entry, error) {
	for _, f := range families {
		if err := model.CheckFamily(f); err != nil {
			return nil, err
		}
	}
	all, err := s.entries(ctx, families, func(m kvstore.Message, key string) bool { return !m.Deleted() && model.CheckKey(key) == nil })
	if err != nil {
		return nil, err
	}

	return s.addDigests(ctx, all)
}

// Removed returns the removed assignments of which the bucket still has the
// deletion, in the order of their keys.
func (s Bucket) Removed(ctx context.Context) ([]model.Entry, error) {
	return s.entries(ctx, nil, func(m kvstore.Message, key string) bool { return m.Deleted() && model.CheckKey(key) == nil })
}

// Invalid returns the keys of the bucket that no node reads, in order.
func (s Bucket) Invalid(ctx context.Context) ([]model.Entry, error) {
	all, err := s.entries(ctx, nil, func(m kvstore.Message, key string) bool { return !m.Deleted() && kvstore.IsInvalidKey(key) })
	for i, e := range all {
		all[i] = model.Entry{Key: e.Key, Revision: e.Revision, Time: e.Time, Invalid: true}
	}

	return all, err
}

// entries returns the keys of some families, or of all for none, that keep
// accepts, in order and without their values.
func (s Bucket) entries(ctx context.Context, families []string, keep func(m kvstore.Message, key string) bool) ([]model.Entry, error) {
	bucket := s.store.Names().Manifests()
	filters := []string{kvstore.KVSubject(bucket, ">")}
	if len(families) > 0 {
		filters = nil
	}
	for _, f := range families {
		filters = append(filters, kvstore.KVSubject(bucket, model.Key(f, ">")))
	}
	cfg := jetstream.OrderedConsumerConfig{FilterSubjects: filters, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: true}
	var all []model.Entry
	for m, err := range s.store.Scan(ctx, kvstore.KVStream(bucket), cfg, false) {
		if err != nil {
			return nil, err
		}
		if key := strings.TrimPrefix(m.Subject, kvstore.KVSubject(bucket, "")); keep(m, key) {
			family, name, _ := model.SplitKey(key)
			all = append(all, model.Entry{Key: key, Family: family, Name: name, Revision: m.Sequence, Time: m.Time})
		}
	}
	slices.SortFunc(all, func(a, b model.Entry) int { return strings.Compare(a.Key, b.Key) })

	return all, nil
}

// DeleteInvalid removes a key that no node reads, and returns the revision of the
// deletion. The error wraps model.ErrNotFound, or model.ErrInvalidName for any other
// key.
func (s Bucket) DeleteInvalid(ctx context.Context, key string) (uint64, error) {
	if !kvstore.IsInvalidKey(key) || strings.ContainsAny(key, "*> \t\r\n") {
		return 0, fmt.Errorf("%w: key %q", model.ErrInvalidName, key)
	}
	bucket := s.store.Names().Manifests()
	subject := kvstore.KVSubject(bucket, key)
	_, err := s.store.Value(ctx, kvstore.KVStream(bucket), subject)
	var revision uint64
	if err == nil {
		revision, err = s.store.Publish(ctx, kvstore.NewDeletion(subject))
	}
	if err != nil {
		return 0, fmt.Errorf("delete key %s: %w", key, err)
	}

	return revision, nil
}

// addDigests sets the digests, from the indexes where they have this revision, else
// from the value.
func (s Bucket) addDigests(ctx context.Context, all []model.Entry) ([]model.Entry, error) {
	indexes := map[string]kvstore.Index{}
	kept := all[:0]
	for _, l := range all {
		ix, known := indexes[l.Family]
		if !known {
			var err error
			if ix, err = s.store.ReadIndex(ctx, l.Family); err != nil && !errors.Is(err, kvstore.ErrBadIndex) {
				return nil, err
			}
			indexes[l.Family] = ix
		}
		if entry := ix.Names[l.Name]; entry.Revision == l.Revision {
			l.Digest = entry.Digest
			kept = append(kept, l)

			continue
		}
		entry, err := s.Get(ctx, l.Key)
		if errors.Is(err, model.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		l.Revision, l.Digest, l.Time = entry.Revision, entry.Digest, entry.Time
		kept = append(kept, l)
	}

	return kept, nil
}

// History returns the revisions of an assignment that the bucket still has, oldest
// first; the error wraps model.ErrNotFound when there is none.
func (s Bucket) History(ctx context.Context, key string) ([]model.Entry, error) {
	bucket := s.store.Names().Manifests()
	if err := model.CheckKey(key); err != nil {
		return nil, err
	}
	var all []model.Entry
	cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{kvstore.KVSubject(bucket, key)}}
	for m, err := range s.store.Scan(ctx, kvstore.KVStream(bucket), cfg, false) {
		if err != nil {
			return nil, err
		}
		all = append(all, newEntry(key, m))
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("history of manifest %s: %w", key, model.ErrNotFound)
	}

	return all, nil
}
