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

// List gives the assignments of some families, or of all when none is named, in
// the order of their keys, with a value only where it had to be read, because no
// index knows its digest; those that a tool put beside the index are among them. The error wraps model.ErrInvalidName.
func (s Bucket) List(ctx context.Context, families ...string) ([]model.Entry, error) {
	bucket := s.store.Names().Manifests()
	filters := []string{kvstore.KVSubject(bucket, ">")}
	if len(families) > 0 {
		filters = nil
	}
	for _, f := range families {
		if err := model.CheckFamily(f); err != nil {
			return nil, err
		}
		filters = append(filters, kvstore.KVSubject(bucket, model.Key(f, ">")))
	}
	cfg := jetstream.OrderedConsumerConfig{FilterSubjects: filters, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: true}
	var all []model.Entry
	for m, err := range s.store.Scan(ctx, kvstore.KVStream(bucket), cfg, false) {
		if err != nil {
			return nil, err
		}
		key := strings.TrimPrefix(m.Subject, kvstore.KVSubject(bucket, ""))
		family, name, ok := kvstore.AssignmentKey(key)
		if !ok || m.Deleted() {
			continue
		}
		all = append(all, model.Entry{Key: key, Family: family, Name: name, Revision: m.Sequence, Time: m.Time})
	}
	slices.SortFunc(all, func(a, b model.Entry) int { return strings.Compare(a.Key, b.Key) })

	return s.addDigests(ctx, all)
}

// Invalid gives the keys of the bucket that are none of an assignment, in order:
// what stands there is for nobody.
func (s Bucket) Invalid(ctx context.Context) ([]model.Entry, error) {
	bucket := s.store.Names().Manifests()
	cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{kvstore.KVSubject(bucket, ">")}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: true}
	var all []model.Entry
	for m, err := range s.store.Scan(ctx, kvstore.KVStream(bucket), cfg, false) {
		if err != nil {
			return nil, err
		}
		if key := strings.TrimPrefix(m.Subject, kvstore.KVSubject(bucket, "")); !m.Deleted() && kvstore.IsInvalidKey(key) {
			all = append(all, model.Entry{Key: key, Revision: m.Sequence, Time: m.Time, Invalid: true})
		}
	}
	slices.SortFunc(all, func(a, b model.Entry) int { return strings.Compare(a.Key, b.Key) })

	return all, nil
}

// DeleteInvalid removes a key that is none of an assignment, and gives the
// revision of its end. The error wraps model.ErrNotFound, or model.ErrInvalidName for a
// key that is one.
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

// addDigests takes digests from the indexes, and from the value itself where an
// index does not know this revision.
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
		l.Revision, l.Digest, l.Time, l.Value = entry.Revision, contentDigest(entry.Value), entry.Time, entry.Value
		kept = append(kept, l)
	}

	return kept, nil
}

// History gives the revisions of an assignment that the bucket still has, at
// most HistorySize of them, oldest first; the error wraps model.ErrNotFound when there is
// none.
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
		all = append(all, kvstore.NewEntry(key, m))
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("history of manifest %s: %w", key, model.ErrNotFound)
	}

	return all, nil
}
