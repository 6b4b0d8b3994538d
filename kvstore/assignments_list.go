package kvstore

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// List returns the assignments of the families, or all if families is empty, sorted by key. Entries
// have digests and terms, but no values. The error wraps model.ErrInvalidName.
func (s Assignments) List(ctx context.Context, families ...string) ([]model.Entry, error) {
	for _, f := range families {
		if err := model.CheckFamily(f); err != nil {
			return nil, err
		}
	}

	return s.entries(ctx, families, false, func(m Message, key string) bool {
		return (!m.Deleted() || m.Forged) && model.CheckKey(key) == nil
	})
}

// Removed returns the removed assignments whose removal the bucket still has, sorted by key.
func (s Assignments) Removed(ctx context.Context) ([]model.Entry, error) {
	return s.entries(ctx, nil, true, func(m Message, key string) bool {
		return m.Deleted() && !m.Forged && model.CheckKey(key) == nil
	})
}

// Invalid returns the keys of the bucket that no node reads, sorted.
func (s Assignments) Invalid(ctx context.Context) ([]model.Entry, error) {
	all, err := s.entries(ctx, nil, true, func(m Message, key string) bool { return !m.Deleted() && IsInvalidKey(key) })
	for i, e := range all {
		all[i] = model.Entry{Key: e.Key, Revision: e.Revision, Time: e.Time, Invalid: true}
	}

	return all, err
}

// Changes yields once per stored revision, and then after each change until ctx ends. The caller then
// calls List. An error is the last item.
func (s Assignments) Changes(ctx context.Context) iter.Seq[error] {
	return func(yield func(error) bool) {
		bucket := s.store.Names().Manifests()
		cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{KVSubject(bucket, ">")}, HeadersOnly: true}
		for _, err := range scanStream(ctx, s.store, KVStream(bucket), cfg, true) {
			if !yield(err) || err != nil {
				return
			}
		}
	}
}

// entries returns the keys of the families that keep accepts, or of all families, sorted and without
// values. It sets digests unless headersOnly is set.
func (s Assignments) entries(ctx context.Context, families []string, headersOnly bool, keep func(m Message, key string) bool) ([]model.Entry, error) {
	bucket := s.store.Names().Manifests()
	filters := []string{KVSubject(bucket, ">")}
	if len(families) > 0 {
		filters = nil
	}
	for _, f := range families {
		filters = append(filters, KVSubject(bucket, model.Key(f, ">")))
	}
	cfg := jetstream.OrderedConsumerConfig{FilterSubjects: filters, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: headersOnly}
	// A key that is written during the scan appears twice, and the last message counts.
	newest := map[string]model.Entry{}
	for m, err := range scanStream(ctx, s.store, KVStream(bucket), cfg, false) {
		if err != nil {
			return nil, err
		}
		key := strings.TrimPrefix(m.Subject, KVSubject(bucket, ""))
		delete(newest, key)
		if keep(m, key) {
			e := NewEntry(key, m)
			e.By = AuthorOf(m)
			if why := m.Refusal(); why != nil {
				e.Refused = why.Error()
			}
			if e.Deleted = false; !headersOnly && e.Refused == "" {
				e.Digest, e.Terms = document.AssignedSummary(key, m.Data)
			}
			e.Value = nil
			newest[key] = e
		}
	}

	return slices.SortedFunc(maps.Values(newest), func(a, b model.Entry) int { return strings.Compare(a.Key, b.Key) }), nil
}

// DeleteInvalid removes a key that no node reads and returns the revision of the removal. The error
// wraps model.ErrNotFound, or model.ErrInvalidName for a valid key.
func (s Assignments) DeleteInvalid(ctx context.Context, key string) (uint64, error) {
	if !IsInvalidKey(key) || strings.ContainsAny(key, "*> \t\r\n") {
		return 0, fmt.Errorf("%w: key %q", model.ErrInvalidName, key)
	}
	bucket := s.store.Names().Manifests()
	subject := KVSubject(bucket, key)
	_, err := s.store.Value(ctx, KVStream(bucket), subject)
	var revision uint64
	if err == nil {
		m := NewDeletion(subject)
		SetAuthor(m, s.by)
		revision, err = s.store.Publish(ctx, m)
	}
	if err != nil {
		return 0, fmt.Errorf("delete key %s: %w", key, err)
	}

	return revision, nil
}

// Revision returns a stored revision of any key by its number. The error wraps model.ErrNotFound.
func (s Assignments) Revision(ctx context.Context, revision uint64) (model.Entry, error) {
	bucket := s.store.Names().Manifests()
	cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{KVSubject(bucket, ">")}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(revision, 1)}
	for m, err := range scanStream(ctx, s.store, KVStream(bucket), cfg, false) {
		if err != nil {
			return model.Entry{}, err
		}
		key := strings.TrimPrefix(m.Subject, KVSubject(bucket, ""))
		if m.Sequence == revision && model.CheckKey(key) == nil {
			return newAssignment(key, m), nil
		}
		break
	}

	return model.Entry{}, fmt.Errorf("revision %d: %w: the bucket keeps the last %d of each key (see muster fleet history)", revision, model.ErrNotFound, HistorySize)
}

// Revisions yields the stored revisions of the families, including removals, in stored order. An error
// is the last item. It wraps model.ErrInvalidName for an invalid family.
func (s Assignments) Revisions(ctx context.Context, families ...string) iter.Seq2[model.Entry, error] {
	return func(yield func(model.Entry, error) bool) {
		bucket := s.store.Names().Manifests()
		var cfg jetstream.OrderedConsumerConfig
		for _, f := range families {
			if err := model.CheckFamily(f); err != nil {
				yield(model.Entry{}, err)
				return
			}
			cfg.FilterSubjects = append(cfg.FilterSubjects, KVSubject(bucket, model.Key(f, ">")))
		}
		for m, err := range scanStream(ctx, s.store, KVStream(bucket), cfg, false) {
			if err != nil {
				yield(model.Entry{}, err)
				return
			}
			key := strings.TrimPrefix(m.Subject, KVSubject(bucket, ""))
			if model.CheckKey(key) == nil && !yield(newAssignment(key, m), nil) {
				return
			}
		}
	}
}

// History returns the stored revisions of an assignment, oldest first. The error wraps
// model.ErrNotFound if there is none.
func (s Assignments) History(ctx context.Context, key string) ([]model.Entry, error) {
	bucket := s.store.Names().Manifests()
	if err := model.CheckKey(key); err != nil {
		return nil, err
	}
	var all []model.Entry
	cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{KVSubject(bucket, key)}}
	for m, err := range scanStream(ctx, s.store, KVStream(bucket), cfg, false) {
		if err != nil {
			return nil, err
		}
		all = append(all, newAssignment(key, m))
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("history of manifest %s: %w", key, model.ErrNotFound)
	}

	return all, nil
}
