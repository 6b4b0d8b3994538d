package kvstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// ErrControlChanged reports that another operator has written a newer revision of the key.
var ErrControlChanged = errors.New("it was changed meanwhile, try again")

// Control accesses the bucket of control documents, such as pauses and labels of nodes and groups.
type Control struct {
	store *Store
	by    string
}

// NewControl returns the control documents of the fleet of s.
func NewControl(s *Store) Control { return Control{store: s} }

// By returns a copy of b that records name as the author of its writes. The name is not verified.
func (b Control) By(name string) Control {
	b.by = name

	return b
}

// Put writes a control key and returns its revision. The last writer wins. The error wraps
// model.ErrInvalidName for an invalid key, or ErrNotProvisioned if the bucket does not exist.
func (b Control) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	return b.change(ctx, "put", key, false, value)
}

// Replace writes a control key if its newest revision is still revision; use zero for a key that never
// existed. Otherwise the error wraps ErrControlChanged. See Put for other errors.
func (b Control) Replace(ctx context.Context, key string, revision uint64, value []byte) (uint64, error) {
	return b.change(ctx, "put", key, false, value, jetstream.WithExpectLastSequencePerSubject(revision))
}

// Delete deletes a control key and returns the revision of the deletion. The proof is for nodes that
// require signatures and may be nil. See Put for errors.
func (b Control) Delete(ctx context.Context, key string, proof []byte) (uint64, error) {
	return b.change(ctx, "delete", key, true, proof)
}

func (b Control) change(ctx context.Context, verb, key string, removal bool, value []byte, opts ...jetstream.PublishOpt) (uint64, error) {
	revision, err := b.publish(ctx, key, removal, value, opts)
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", verb, key, err)
	}

	return revision, nil
}

func (b Control) publish(ctx context.Context, key string, removal bool, value []byte, opts []jetstream.PublishOpt) (uint64, error) {
	if !model.IsControlKey(key) {
		return 0, fmt.Errorf("%w: no control key", model.ErrInvalidName)
	}
	subject := KVSubject(b.store.Names().Control(), key)
	m := NewMsg(subject, nil)
	if removal {
		m = NewDeletion(subject)
	}
	m.Data = value
	SetAuthor(m, b.by)
	if err := b.there(ctx); err != nil {
		return 0, err
	}
	revision, err := b.store.Publish(ctx, m, opts...)
	if IsReplaced(err) {
		err = ErrControlChanged
	}

	return revision, err
}

// newControlEntry returns a revision with its author.
func newControlEntry(key string, m Message) model.Entry {
	e := NewEntry(key, m)
	e.By = AuthorOf(m)

	return e
}

// there returns an error that wraps ErrNotProvisioned if the bucket does not exist.
func (b Control) there(ctx context.Context) error {
	n := b.store.Names()
	there, err := b.store.Has(ctx, KVStream(n.Control()), KVSubject(n.Control(), ">"))
	if err == nil && !there {
		err = fmt.Errorf("%w, there is no bucket %s: run `%s`", ErrNotProvisioned, n.Control(), n.Init())
	}

	return err
}

// Get reads a control key. The error wraps model.ErrNotFound for a deleted key, with the revision of
// the deletion, and for a key that never existed, with revision zero. It wraps ErrUnreadable or
// ErrServerHeaders for a value that must not be used.
func (b Control) Get(ctx context.Context, key string) (model.Entry, error) {
	return b.get(ctx, key, b.store.Last)
}

// Current reads a control key like Get, but waits up to a second for a lagging replica. The user needs
// permission to write the key. The error wraps ErrLags if the replica still lags. See Get for other
// errors.
func (b Control) Current(ctx context.Context, key string) (model.Entry, error) {
	return b.get(ctx, key, b.store.CurrentMessage)
}

func (b Control) get(ctx context.Context, key string, read func(ctx context.Context, stream, subject string) (Message, error)) (model.Entry, error) {
	if err := b.there(ctx); err != nil {
		return model.Entry{}, err
	}
	bucket := b.store.Names().Control()
	m, err := read(ctx, KVStream(bucket), KVSubject(bucket, key))
	switch {
	case err != nil:
	case m.Forged:
		err = m.Refusal()
	case m.Deleted():
		err = model.ErrNotFound
	}
	if err != nil {
		return model.Entry{Key: key, Revision: m.Sequence}, fmt.Errorf("%s: %w", key, err)
	}

	return newControlEntry(key, m), nil
}

// History returns the stored revisions of all control keys in the families, including deletions,
// oldest first. It returns none if the bucket does not exist, and omits messages with forged server
// headers. The error wraps model.ErrInvalidName for an invalid family.
func (b Control) History(ctx context.Context, families ...string) ([]model.Entry, error) {
	bucket := b.store.Names().Control()
	var cfg jetstream.OrderedConsumerConfig
	for _, f := range families {
		if err := model.CheckFamily(f); err != nil {
			return nil, err
		}
		cfg.FilterSubjects = append(cfg.FilterSubjects, KVSubject(bucket, model.Key(f, ">")))
	}
	if err := b.there(ctx); err != nil {
		if errors.Is(err, ErrNotProvisioned) {
			err = nil
		}
		return nil, err
	}
	var all []model.Entry
	for m, err := range scanStream(ctx, b.store, KVStream(bucket), cfg, false) {
		if err != nil {
			return nil, err
		}
		if key := strings.TrimPrefix(m.Subject, KVSubject(bucket, "")); model.IsControlKey(key) && !m.Forged {
			all = append(all, newControlEntry(key, m))
		}
	}

	return all, nil
}

// controlBatch is the number of revisions in one read.
const controlBatch = 256

// Changes returns at most most revisions of the control keys, newest first, and reports whether the bucket may have
// more. The bucket stores 16 revisions of each key. If more revisions exist, one node or group gets a quarter of the
// result unless the others cannot fill the rest. So a user with write access to one cannot hide changes to the others.
func (b Control) Changes(ctx context.Context, most int) (all []model.Entry, more bool, err error) {
	if err := b.there(ctx); err != nil {
		return nil, false, err
	}
	bucket := b.store.Names().Control()
	last, err := b.store.Last(ctx, KVStream(bucket), KVSubject(bucket, ">"))
	if errors.Is(err, model.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}

	return readNewest(ctx, last.Sequence+1, most, b.between)
}

// between implements revisionRange.
func (b Control) between(ctx context.Context, from, to uint64, most, bytes int) (out []model.Entry, size int, err error) {
	bucket := b.store.Names().Control()
	stream, subject := KVStream(bucket), KVSubject(bucket, ">")
	for more := true; more && from < to; {
		page, err := b.store.Page(ctx, Query{Stream: stream, Subject: subject, From: from}, int(min(controlBatch, to-from)))
		for _, m := range page.Messages {
			if m.Sequence >= to {
				return out, size, nil
			}
			size += messageSize(m)
			out = append(out, newControlChange(strings.TrimPrefix(m.Subject, KVSubject(bucket, "")), m))
			if len(out) > most || len(out) > 1 && size > bytes {
				return nil, 0, errTooMuch
			}
		}
		if err != nil {
			return nil, 0, err
		}
		from, more = page.Next, page.More
	}

	return out, size, nil
}

func newControlChange(key string, m Message) model.Entry {
	out := newControlEntry(key, m)
	if err := m.Refusal(); err != nil {
		out.Refused, out.Value = err.Error(), nil
	}

	return out
}

// ControlRevision is the newest revision of a control key, which may be a deletion.
type ControlRevision struct {
	model.Entry
	// Complete reports whether Follow has yielded every revision stored before the call. For an
	// empty bucket, the first value is complete and its Entry has no key.
	Complete bool
}

// Follow yields the newest revision of each control key, oldest first, and then each new revision
// until ctx ends. It uses one consumer for all nodes. An entry with an unusable value has Refused set.
// Follow ends after the first error, which wraps ErrNotProvisioned if the bucket does not exist.
func (b Control) Follow(ctx context.Context) iter.Seq2[ControlRevision, error] {
	return func(yield func(ControlRevision, error) bool) {
		bucket := b.store.Names().Control()
		stream, all := KVStream(bucket), KVSubject(bucket, ">")
		err := b.there(ctx)
		var last Message
		if err == nil {
			last, err = b.store.Last(ctx, stream, all)
		}
		switch {
		case errors.Is(err, ErrUnreadable): // the loop below yields it as Refused
		case errors.Is(err, model.ErrNotFound):
			if !yield(ControlRevision{Complete: true}, nil) {
				return
			}
		case err != nil:
			yield(ControlRevision{}, err)
			return
		}
		cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{all}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy}
		for m, err := range scanStream(ctx, b.store, stream, cfg, true) {
			if err != nil {
				yield(ControlRevision{}, err)
				return
			}
			f := ControlRevision{Complete: m.Sequence >= last.Sequence}
			if key := strings.TrimPrefix(m.Subject, KVSubject(bucket, "")); model.IsControlKey(key) {
				f.Entry = newControlChange(key, m)
				f.Deleted = f.Deleted && f.Refused == ""
			}
			if !yield(f, nil) {
				return
			}
		}
	}
}

const (
	// widenWindow multiplies the search window after each read and divides it after errTooMuch.
	widenWindow = 4
	// searchRevisions and searchBytes limit the search: at most searchRevisions times the requested
	// number of revisions, and searchBytes bytes.
	searchRevisions = 10
	searchBytes     = 32 << 20
	// quotaDivisor is the divisor of the quota: a family gets 1/quotaDivisor of the result while other
	// families can fill the rest.
	quotaDivisor = 4
)

// errTooMuch reports that a range holds more revisions or bytes than the caller allowed.
var errTooMuch = errors.New("too much to look at")

// revisionRange returns the revisions in [from, to), oldest first, and their total size in bytes. The
// error wraps errTooMuch if the range holds more than most revisions or more than bytes bytes. A
// single revision may exceed the byte limit.
type revisionRange func(ctx context.Context, from, to uint64, most, bytes int) (all []model.Entry, size int, err error)

// readNewest returns at most most revisions before to, newest first, and reports whether the bucket
// may have more. If more revisions exist, one family gets a quarter of the result unless the other
// families cannot fill the rest. So a user with write access to one family cannot hide changes to the
// others. readNewest returns the errors of between, except errTooMuch.
func readNewest(ctx context.Context, to uint64, most int, between revisionRange) (all []model.Entry, more bool, err error) {
	all, to, err = searchNewest(ctx, to, most, between)
	if err != nil {
		return nil, false, err
	}
	more = to > 1 || len(all) > most
	slices.Reverse(all)

	return ShareByFamily(all, most, entryFamily), more, nil
}

// searchNewest returns the newest revisions before to, oldest first, up to the search limits. The
// result holds every revision in [from, to).
func searchNewest(ctx context.Context, to uint64, most int, between revisionRange) (all []model.Entry, from uint64, err error) {
	// The bucket may have dropped most revisions, so each window is wider than the previous one. When a window
	// holds too much, the search continues inside it with smaller windows and ignores older revisions.
	window, by, end, size := uint64(max(most, 1)), uint64(widenWindow), uint64(1), 0
	for to > end && len(all) < searchRevisions*most && size < searchBytes && !fillsQuota(all, most) {
		window = min(window, to-end)
		older, bytes, err := between(ctx, to-window, to, searchRevisions*most-len(all), searchBytes-size)
		switch {
		case errors.Is(err, errTooMuch):
			end, window, by = to-window, max(window/widenWindow, 1), 1
		case err != nil:
			return nil, 0, err
		default:
			all, to, size = append(older, all...), to-window, size+bytes
			window *= by
		}
	}

	return all, to, nil
}

// fillsQuota reports whether all fills the result even with the quota, so that older revisions cannot
// change it.
func fillsQuota(all []model.Entry, most int) bool {
	of, count := map[string]int{}, 0
	for _, e := range all {
		if family := entryFamily(e); of[family] < familyQuota(most) {
			of[family]++
			count++
		}
	}

	return count > most
}

// familyQuota returns the quota of one family.
func familyQuota(most int) int { return max(most/quotaDivisor, 1) }

func entryFamily(e model.Entry) string {
	family, _, _ := model.SplitKey(e.Key)

	return family
}

// ShareByFamily returns at most most elements of all, which is sorted newest first, in the same order.
// It first takes the newest elements of each family up to a quarter of most, then fills the rest with
// the newest remaining elements.
func ShareByFamily[T any](all []T, most int, familyOf func(T) string) []T {
	if len(all) <= most {
		return all
	}
	of, taken := map[string]int{}, make([]bool, len(all))
	left := most
	take := func(may func(family string) bool) {
		for i, e := range all {
			family := familyOf(e)
			if left > 0 && !taken[i] && may(family) {
				taken[i] = true
				of[family]++
				left--
			}
		}
	}
	take(func(family string) bool { return of[family] < familyQuota(most) })
	take(func(string) bool { return true })
	out := make([]T, 0, most)
	for i, e := range all {
		if taken[i] {
			out = append(out, e)
		}
	}

	return out
}
