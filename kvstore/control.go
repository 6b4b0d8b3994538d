package kvstore

import (
	"context"
	"errors"
	"fmt"
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
