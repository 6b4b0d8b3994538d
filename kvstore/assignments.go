package kvstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// ErrAssignmentChanged reports that the key has a newer revision than the one to replace.
var ErrAssignmentChanged = errors.New("it was changed meanwhile: look at it (muster fleet show), and try again")

// Assignments accesses the bucket of assignments.
type Assignments struct {
	store *Store
	by    string
}

// NewAssignments returns the assignments of the fleet of s.
func NewAssignments(s *Store) Assignments { return Assignments{store: s} }

// By returns a copy of s that records name as the author of its writes. The name is not verified.
func (s Assignments) By(name string) Assignments {
	s.by = name

	return s
}

// Put stores a manifest under its key and returns its revision. The last writer wins. The error wraps
// model.ErrInvalidName or model.ErrTooLarge.
func (s Assignments) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if err := s.store.Sizes().CheckMessage("manifest "+key, value); err != nil {
		return 0, fmt.Errorf("%w: put it into a bundle", err)
	}
	revision, err := s.change(ctx, key, func(subject string) *nats.Msg { return NewMsg(subject, value) })
	if err != nil {
		return 0, fmt.Errorf("put manifest %s: %w", key, err)
	}

	return revision, nil
}

// Replace stores a value, or a removal with a proof, if old is still the newest revision of its key.
// Otherwise the error wraps ErrAssignmentChanged.
func (s Assignments) Replace(ctx context.Context, old model.Entry, value []byte, removal bool) (uint64, error) {
	if err := s.store.Sizes().CheckMessage("manifest "+old.Key, value); err != nil {
		return 0, err
	}
	revision, err := s.change(ctx, old.Key, func(subject string) *nats.Msg {
		m := NewMsg(subject, nil)
		if removal {
			m = NewDeletion(subject)
		}
		m.Data = value

		return m
	}, jetstream.WithExpectLastSequencePerSubject(old.Revision))
	if err != nil {
		return 0, fmt.Errorf("replace revision %d of %s: %w", old.Revision, old.Key, err)
	}

	return revision, nil
}

// Delete removes an assignment and returns the revision of the removal. It also stores a removal for
// an unknown key, because a node may run an assignment of an earlier bucket. The error wraps
// model.ErrInvalidName.
func (s Assignments) Delete(ctx context.Context, key string) (uint64, error) {
	return s.DeleteSigned(ctx, key, nil)
}

// DeleteSigned is Delete with a proof in the removal, for nodes that require signatures. Other nodes
// and NATS clients ignore the proof.
func (s Assignments) DeleteSigned(ctx context.Context, key string, proof []byte) (uint64, error) {
	revision, err := s.change(ctx, key, func(subject string) *nats.Msg {
		m := NewDeletion(subject)
		m.Data = proof

		return m
	})
	if err != nil {
		return 0, fmt.Errorf("delete manifest %s: %w", key, err)
	}

	return revision, nil
}

// change stores a message for a key and returns its revision. The error wraps ErrAssignmentChanged.
func (s Assignments) change(ctx context.Context, key string, message func(subject string) *nats.Msg, opts ...jetstream.PublishOpt) (uint64, error) {
	if err := model.CheckKey(key); err != nil {
		return 0, err
	}
	m := message(KVSubject(s.store.Names().Manifests(), key))
	SetAuthor(m, s.by)
	revision, err := s.store.Publish(ctx, m, opts...)
	if IsReplaced(err) {
		err = ErrAssignmentChanged
	}

	return revision, err
}

// Get reads an assignment. The error wraps model.ErrNotFound, model.ErrInvalidName or
// ErrServerHeaders.
func (s Assignments) Get(ctx context.Context, key string) (model.Entry, error) {
	return s.get(ctx, key, s.store.Value)
}

// Current reads an assignment like Get, but waits up to a second for a lagging replica. The user needs
// permission to write the key. The error wraps ErrLags if the replica still lags.
func (s Assignments) Current(ctx context.Context, key string) (model.Entry, error) {
	return s.get(ctx, key, s.store.CurrentValue)
}

func (s Assignments) get(ctx context.Context, key string, read func(ctx context.Context, stream, subject string) (Message, error)) (model.Entry, error) {
	if err := model.CheckKey(key); err != nil {
		return model.Entry{}, err
	}
	bucket := s.store.Names().Manifests()
	m, err := read(ctx, KVStream(bucket), KVSubject(bucket, key))
	if err != nil {
		return model.Entry{}, fmt.Errorf("manifest %s: %w", key, err)
	}

	return newAssignment(key, m), nil
}

// newAssignment returns a revision with its author, terms and digest.
func newAssignment(key string, m Message) model.Entry {
	e := NewEntry(key, m)
	e.By = AuthorOf(m)
	if err := m.Refusal(); err != nil {
		e.Refused, e.Deleted, e.Value = err.Error(), false, nil
	}
	if !e.Deleted {
		e.Digest, e.Terms = document.AssignedSummary(key, e.Value)
	}

	return e
}

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

// latestWidening multiplies the search window after each read.
const latestWidening = 4

// Latest returns at most most revisions of all keys, newest first, and reports whether the bucket has
// more. It includes removals and invalid keys. Entries have no values and digests. The bucket stores
// 16 revisions of each key.
func (s Assignments) Latest(ctx context.Context, most int) (all []model.Entry, more bool, err error) {
	last, err := s.last(ctx)
	if err != nil {
		return nil, false, err
	}
	// The bucket may have dropped most revisions, so each window is wider than the previous one.
	for to, window := last+1, uint64(max(most, 1)); to > 1 && len(all) <= most; window *= latestWidening {
		from := uint64(1)
		if to > window {
			from = to - window
		}
		older, _, err := s.between(ctx, from, to, math.MaxInt, math.MaxInt)
		if err != nil {
			return nil, false, err
		}
		all, to = append(older, all...), from
	}
	if more = len(all) > most; more {
		all = all[len(all)-most:]
	}
	slices.Reverse(all)

	return all, more, nil
}

// Audit returns the newest revisions like Latest. If more revisions exist, one node or group gets a
// quarter of the result unless the others cannot fill the rest. So a user with write access to one
// cannot hide changes to the others.
func (s Assignments) Audit(ctx context.Context, most int) (all []model.Entry, more bool, err error) {
	last, err := s.last(ctx)
	if err != nil || last == 0 {
		return nil, false, err
	}

	return readNewest(ctx, last+1, most, s.between)
}

// last returns the last revision, or zero if the bucket is empty.
func (s Assignments) last(ctx context.Context) (uint64, error) {
	bucket := s.store.Names().Manifests()
	last, err := s.store.Last(ctx, KVStream(bucket), KVSubject(bucket, ">"))
	if errors.Is(err, model.ErrNotFound) {
		return 0, nil
	}

	return last.Sequence, err
}

// between implements revisionRange.
func (s Assignments) between(ctx context.Context, from, to uint64, most, bytes int) (out []model.Entry, size int, err error) {
	bucket := s.store.Names().Manifests()
	cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{KVSubject(bucket, ">")}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from, HeadersOnly: true}
	for m, err := range scanStream(ctx, s.store, KVStream(bucket), cfg, false) {
		if err != nil {
			return nil, 0, err
		}
		if m.Sequence >= to {
			break
		}
		e := newAssignment(strings.TrimPrefix(m.Subject, KVSubject(bucket, "")), m)
		e.Value, e.Digest, e.Invalid = nil, "", IsInvalidKey(e.Key)
		out = append(out, e)
		size += messageSize(m)
		if len(out) > most || len(out) > 1 && size > bytes {
			return nil, 0, errTooMuch
		}
	}

	return out, size, nil
}

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
