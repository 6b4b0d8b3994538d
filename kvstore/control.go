package kvstore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// Control accesses the bucket of control documents, such as pauses and labels of nodes and groups.
type Control struct{ bucket }

// NewControl returns the control documents of the fleet of s.
func NewControl(s *Store) Control {
	name := s.Names.Control

	b := Control{bucket{series: newSeries(s, name), name: name, errChanged: model.ErrControlChanged, value: newEntryBy, change: newRefusable}}
	b.check = func(ctx context.Context, key string) error {
		if !model.IsControlKey(key) {
			return fmt.Errorf("%w: no control key", model.ErrInvalidName)
		}
		return b.there(ctx)
	}

	return b
}

// By returns a copy of b that records name as the author of its writes. The name is not verified.
func (b Control) By(name string) Control {
	b.by = name

	return b
}

// Put writes a control key and returns its revision. The last writer wins. The error wraps
// model.ErrInvalidName for an invalid key, or model.ErrNotProvisioned if the bucket does not exist.
func (b Control) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	return b.put(ctx, "put "+key, key, value, false)
}

// Replace writes a control key if its newest revision is still revision; use zero for a key that never
// existed. Otherwise the error wraps model.ErrControlChanged. See Put for other errors.
func (b Control) Replace(ctx context.Context, key string, revision uint64, value []byte) (uint64, error) {
	return b.put(ctx, "put "+key, key, value, false, jetstream.WithExpectLastSequencePerSubject(revision))
}

// there returns an error that wraps model.ErrNotProvisioned if the bucket does not exist.
func (b Control) there(ctx context.Context) error {
	there, err := b.store.Has(ctx, b.stream, b.subject)
	if err == nil && !there {
		err = fmt.Errorf("%w, there is no bucket %s: run `%s`", model.ErrNotProvisioned, b.name, b.store.Names.Run("fleet init"))
	}

	return err
}

// History returns the stored revisions of all control keys in the families, including deletions,
// oldest first. It returns none if the bucket does not exist, and omits messages with forged server
// headers. The error wraps model.ErrInvalidName for an invalid family.
func (b Control) History(ctx context.Context, families ...string) ([]model.Entry, error) {
	keys, err := keysOf(families)
	if err != nil {
		return nil, err
	}
	if err := b.there(ctx); err != nil {
		if errors.Is(err, model.ErrNotProvisioned) {
			err = nil
		}
		return nil, err
	}
	var all []model.Entry
	for m, err := range b.scan(ctx, jetstream.OrderedConsumerConfig{}, keys...) {
		if err != nil {
			return nil, err
		}
		if key := b.key(m); model.IsControlKey(key) && !m.Forged {
			all = append(all, newEntryBy(key, m))
		}
	}

	return all, nil
}

// Changes returns at most most revisions of the control keys, newest first, and reports whether the bucket may have
// more. The bucket stores 16 revisions of each key. If more revisions exist, one node or group gets a quarter of the
// result unless the others cannot fill the rest. So a user with write access to one cannot hide changes to the others.
func (b Control) Changes(ctx context.Context, most int) (all []model.Entry, more bool, err error) {
	if err := b.there(ctx); err != nil {
		return nil, false, err
	}

	return b.newest(ctx, most, true, false)
}

// Follow yields the newest revision of each control key, oldest first, and then each new revision
// until ctx ends. It uses one consumer for all nodes. An entry with an unusable value has Refused set.
// Follow ends after the first error, which wraps model.ErrNotProvisioned if the bucket does not exist.
func (b Control) Follow(ctx context.Context) iter.Seq2[model.ControlRevision, error] {
	return func(yield func(model.ControlRevision, error) bool) {
		err := b.there(ctx)
		var last Message
		if err == nil {
			last, err = b.store.Last(ctx, b.stream, b.subject)
		}
		switch {
		case errors.Is(err, ErrUnreadable): // the loop below yields it as Refused
		case errors.Is(err, model.ErrNotFound):
			if !yield(model.ControlRevision{Complete: true}, nil) {
				return
			}
		case err != nil:
			yield(model.ControlRevision{}, err)
			return
		}
		cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{b.subject}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy}
		for m, err := range scanStream(ctx, b.store, b.stream, cfg, true) {
			if err != nil {
				yield(model.ControlRevision{}, err)
				return
			}
			f := model.ControlRevision{Complete: m.Sequence >= last.Sequence}
			if key := b.key(m); model.IsControlKey(key) {
				f.Entry = newRefusable(key, m)
			}
			if !yield(f, nil) {
				return
			}
		}
	}
}
