package kvstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// ErrAssignmentChanged reports that the key has a newer revision than the one to replace.
var ErrAssignmentChanged = errors.New("another user has changed it: look at it (muster fleet show), and try again")

// removalGrace limits how long nodes take to apply a removal.
const removalGrace = time.Minute

// Assignments accesses the bucket of assignments.
type Assignments struct{ bucket }

// NewAssignments returns the assignments of the fleet of s.
func NewAssignments(s *Store) Assignments {
	name := s.Names.Manifests

	return Assignments{bucket{
		series: newSeries(s, name), name: name, kind: "manifest ", errChanged: ErrAssignmentChanged, value: newAssignment, change: newAssignmentHeader,
		check: func(_ context.Context, key string) error { return model.CheckKey(key) },
	}}
}

// By returns a copy of s that records name as the author of its writes. The name is not verified.
func (s Assignments) By(name string) Assignments {
	s.by = name

	return s
}

// Put stores a manifest under its key and returns its revision. The last writer wins. The error wraps
// model.ErrInvalidName or model.ErrTooLarge.
func (s Assignments) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if err := s.store.Sizes.CheckMessage("manifest "+key, value); err != nil {
		return 0, fmt.Errorf("%w: put it into a bundle", err)
	}

	return s.put(ctx, "put manifest "+key, key, value, false)
}

// Replace stores a value, or a removal with a proof, if old is still the newest revision of its key.
// Otherwise the error wraps ErrAssignmentChanged.
func (s Assignments) Replace(ctx context.Context, old model.Entry, value []byte, removal bool) (uint64, error) {
	if err := s.store.Sizes.CheckMessage("manifest "+old.Key, value); err != nil {
		return 0, err
	}

	return s.put(ctx, fmt.Sprintf("replace revision %d of %s", old.Revision, old.Key), old.Key, value, removal, jetstream.WithExpectLastSequencePerSubject(old.Revision))
}

func newAssignment(key string, m Message) model.Entry {
	e := newRefusable(key, m)
	if !e.Deleted {
		e.Digest, e.Terms = document.AssignedSummary(key, e.Value)
	}

	return e
}

// newAssignmentHeader returns a revision without its value, terms and digest. The key may be invalid.
func newAssignmentHeader(key string, m Message) model.Entry {
	e := newRefusable(key, m)
	e.Value, e.Invalid = nil, IsInvalidKey(key)

	return e
}

// newRefusable returns a revision with its author. A forged message is no removal and has no value.
func newRefusable(key string, m Message) model.Entry {
	e := newEntryBy(key, m)
	if err := m.Refusal(); err != nil {
		e.Refused, e.Deleted, e.Value = err.Error(), false, nil
	}

	return e
}

// List returns the assignments of the families, or all if families is empty, sorted by key. Entries
// have digests and terms, but no values. The error wraps model.ErrInvalidName.
func (s Assignments) List(ctx context.Context, families ...string) ([]model.Entry, error) {
	keys, err := keysOf(families)
	if err != nil {
		return nil, err
	}

	return s.entries(ctx, false, func(m Message, key string) bool {
		return (!m.Deleted() || m.Forged) && model.CheckKey(key) == nil
	}, keys...)
}

// Removed returns the removed assignments, sorted by key, unless the bucket has lost the removal.
func (s Assignments) Removed(ctx context.Context) ([]model.Entry, error) {
	return s.entries(ctx, true, func(m Message, key string) bool {
		return m.Deleted() && !m.Forged && model.CheckKey(key) == nil
	})
}

// Invalid returns the keys of the bucket that no node reads, sorted.
func (s Assignments) Invalid(ctx context.Context) ([]model.Entry, error) {
	all, err := s.entries(ctx, true, func(m Message, key string) bool { return !m.Deleted() && IsInvalidKey(key) })
	for i, e := range all {
		all[i] = model.Entry{Key: e.Key, Revision: e.Revision, Time: e.Time, Invalid: true}
	}

	return all, err
}

// entries returns the keys that keep accepts, sorted and without values. It sets digests and terms unless headersOnly is
// set.
func (s Assignments) entries(ctx context.Context, headersOnly bool, keep func(m Message, key string) bool, keys ...string) ([]model.Entry, error) {
	cfg := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: headersOnly}
	// A key that is written during the scan appears twice, and the last message counts.
	newest := map[string]model.Entry{}
	for m, err := range s.scan(ctx, cfg, keys...) {
		if err != nil {
			return nil, err
		}
		key := s.key(m)
		if delete(newest, key); !keep(m, key) {
			continue
		}
		e := newRefusable(key, m)
		if e.Deleted = false; !headersOnly && e.Refused == "" {
			e.Digest, e.Terms = document.AssignedSummary(key, m.Data)
		}
		e.Value = nil
		newest[key] = e
	}

	return slices.SortedFunc(maps.Values(newest), func(a, b model.Entry) int { return strings.Compare(a.Key, b.Key) }), nil
}

// Changes yields once per stored revision, and then after each change until ctx ends. The caller then
// calls List. An error is the last item.
func (s Assignments) Changes(ctx context.Context) iter.Seq[error] {
	return func(yield func(error) bool) {
		cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{s.subject}, HeadersOnly: true}
		for _, err := range scanStream(ctx, s.store, s.stream, cfg, true) {
			if !yield(err) || err != nil {
				return
			}
		}
	}
}

// DeleteInvalid removes a key that no node reads and returns the revision of the removal. The error
// wraps model.ErrNotFound, or model.ErrInvalidName for a valid key.
func (s Assignments) DeleteInvalid(ctx context.Context, key string) (uint64, error) {
	if !IsInvalidKey(key) || strings.ContainsAny(key, "*> \t\r\n") {
		return 0, fmt.Errorf("%w: key %q", model.ErrInvalidName, key)
	}
	m, err := s.store.Last(ctx, s.stream, KVSubject(s.name, key))
	_, err = used(s.stream, m, err)
	var revision uint64
	if err == nil {
		revision, err = s.write(ctx, key, nil, true)
	}
	if err != nil {
		return 0, fmt.Errorf("delete key %s: %w", key, err)
	}

	return revision, nil
}

// Revision returns a stored revision of any key by its number. The error wraps model.ErrNotFound.
func (s Assignments) Revision(ctx context.Context, revision uint64) (model.Entry, error) {
	cfg := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(revision, 1)}
	for m, err := range s.scan(ctx, cfg) {
		if err != nil {
			return model.Entry{}, err
		}
		if key := s.key(m); m.Sequence == revision && model.CheckKey(key) == nil {
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
		keys, err := keysOf(families)
		if err != nil {
			yield(model.Entry{}, err)
			return
		}
		for m, err := range s.scan(ctx, jetstream.OrderedConsumerConfig{}, keys...) {
			if err != nil {
				yield(model.Entry{}, err)
				return
			}
			if key := s.key(m); model.CheckKey(key) == nil && !yield(newAssignment(key, m), nil) {
				return
			}
		}
	}
}

// History returns the stored revisions of an assignment, oldest first. The error wraps
// model.ErrNotFound if there is none.
func (s Assignments) History(ctx context.Context, key string) ([]model.Entry, error) {
	if err := model.CheckKey(key); err != nil {
		return nil, err
	}
	var all []model.Entry
	for m, err := range s.scan(ctx, jetstream.OrderedConsumerConfig{}, key) {
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

// Latest returns at most most revisions of all keys, newest first, and reports whether the bucket has more. It includes
// removals and invalid keys. Entries have no values, terms and digests. The bucket stores 16 revisions of each key.
func (s Assignments) Latest(ctx context.Context, most int) (all []model.Entry, more bool, err error) {
	return s.newest(ctx, most, false, true)
}

// Audit returns the newest revisions like Latest. If more revisions exist, one node or group gets a quarter of the result
// unless the others cannot fill the rest. So a user with write access to one cannot hide changes to the others.
func (s Assignments) Audit(ctx context.Context, most int) (all []model.Entry, more bool, err error) {
	return s.newest(ctx, most, true, true)
}

// Lost returns the keys that the bucket lost, of keys with the revisions that reachable nodes run: the bucket has neither
// a value nor a removal, or it has a removal from before that revision, which nodes ignore. Lost reads each key from the
// server and ignores invalid keys.
func (s Assignments) Lost(ctx context.Context, revisions map[string]uint64) (map[string]bool, error) {
	lost := map[string]bool{}
	for key, revision := range revisions {
		if model.CheckKey(key) != nil {
			continue
		}
		m, err := s.store.Last(ctx, s.stream, KVSubject(s.name, key))
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
