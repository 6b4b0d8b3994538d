package kvstore

import (
	"context"
	"errors"
	"fmt"

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
