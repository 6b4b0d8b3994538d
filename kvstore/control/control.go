// Package control is the operator's side of what is written about nodes: it puts, reads and
// deletes pauses and labels.
package control

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/scan"
	"github.com/musterfleet/muster/model"
)

// ErrChanged is a key with a newer revision than the one to be replaced: another operator wrote
// it meanwhile.
var ErrChanged = errors.New("it was changed meanwhile, try again")

// Bucket is the bucket of control documents.
type Bucket struct {
	store *kvstore.Store
	by    string
}

// New returns the bucket of a fleet.
func New(s *kvstore.Store) Bucket { return Bucket{store: s} }

// By returns the bucket of somebody: what they write names them, for people. Nobody has verified that.
func (b Bucket) By(name string) Bucket {
	b.by = name

	return b
}

// Put writes a control key and returns its revision. Of several operators the last wins. The
// error wraps model.ErrInvalidName, or kvstore.ErrNotProvisioned where the fleet has no such
// bucket.
func (b Bucket) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	return b.change(ctx, "put", key, false, value)
}

// Replace is Put where the newest revision of the key is still the one given, zero for a key
// that never was. The error wraps ErrChanged where it is not.
func (b Bucket) Replace(ctx context.Context, key string, revision uint64, value []byte) (uint64, error) {
	return b.change(ctx, "put", key, false, value, jetstream.WithExpectLastSequencePerSubject(revision))
}

// Delete ends a control key and returns the revision of that, with a proof for nodes that
// demand signatures, nil for none.
func (b Bucket) Delete(ctx context.Context, key string, proof []byte) (uint64, error) {
	return b.change(ctx, "delete", key, true, proof)
}

func (b Bucket) change(ctx context.Context, verb, key string, removal bool, value []byte, opts ...jetstream.PublishOpt) (uint64, error) {
	revision, err := b.publish(ctx, key, removal, value, opts)
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", verb, key, err)
	}

	return revision, nil
}

func (b Bucket) publish(ctx context.Context, key string, removal bool, value []byte, opts []jetstream.PublishOpt) (uint64, error) {
	if !model.IsControlKey(key) {
		return 0, fmt.Errorf("%w: no control key", model.ErrInvalidName)
	}
	subject := kvstore.KVSubject(b.store.Names().Control(), key)
	m := kvstore.NewMsg(subject, nil)
	if removal {
		m = kvstore.NewDeletion(subject)
	}
	m.Data = value
	kvstore.SetAuthor(m, b.by)
	if err := b.there(ctx); err != nil {
		return 0, err
	}
	revision, err := b.store.Publish(ctx, m, opts...)
	if kvstore.IsReplaced(err) {
		err = ErrChanged
	}

	return revision, err
}

// newEntry returns a revision with who wrote it.
func newEntry(key string, m kvstore.Message) model.Entry {
	e := kvstore.NewEntry(key, m)
	e.By = kvstore.AuthorOf(m)

	return e
}

// there returns an error where the fleet has no such bucket.
func (b Bucket) there(ctx context.Context) error {
	n := b.store.Names()
	there, err := b.store.Has(ctx, kvstore.KVStream(n.Control()), kvstore.KVSubject(n.Control(), ">"))
	if err == nil && !there {
		err = fmt.Errorf("%w, there is no bucket %s: run `%s`", kvstore.ErrNotProvisioned, n.Control(), n.Init())
	}

	return err
}

// Get reads a control key. The revision is also that of one that was deleted, zero for one that
// never was; the error wraps model.ErrNotFound for both, or answer.ErrServerHeaders.
func (b Bucket) Get(ctx context.Context, key string) (model.Entry, error) {
	return b.get(ctx, key, b.store.Last)
}

// Current is Get as the leader of the bucket has it, for who may write the key. The error wraps kvstore.ErrLags where the
// servers that answer do not have that for a second.
func (b Bucket) Current(ctx context.Context, key string) (model.Entry, error) {
	return b.get(ctx, key, b.store.CurrentMessage)
}

func (b Bucket) get(ctx context.Context, key string, read func(ctx context.Context, stream, subject string) (kvstore.Message, error)) (model.Entry, error) {
	if err := b.there(ctx); err != nil {
		return model.Entry{}, err
	}
	bucket := b.store.Names().Control()
	m, err := read(ctx, kvstore.KVStream(bucket), kvstore.KVSubject(bucket, key))
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

	return newEntry(key, m), nil
}

// History returns the revisions of the control keys of some families that the bucket still
// has, deletions included, in the order in which they were stored; none where the fleet has no
// such bucket. What has headers that claim to be the server's is left out. The error wraps
// model.ErrInvalidName.
func (b Bucket) History(ctx context.Context, families ...string) ([]model.Entry, error) {
	bucket := b.store.Names().Control()
	var cfg jetstream.OrderedConsumerConfig
	for _, f := range families {
		if err := model.CheckFamily(f); err != nil {
			return nil, err
		}
		cfg.FilterSubjects = append(cfg.FilterSubjects, kvstore.KVSubject(bucket, model.Key(f, ">")))
	}
	if err := b.there(ctx); err != nil {
		if errors.Is(err, kvstore.ErrNotProvisioned) {
			err = nil
		}
		return nil, err
	}
	var all []model.Entry
	for m, err := range scan.Stream(ctx, b.store, kvstore.KVStream(bucket), cfg, false) {
		if err != nil {
			return nil, err
		}
		if key := strings.TrimPrefix(m.Subject, kvstore.KVSubject(bucket, "")); model.IsControlKey(key) && !m.Forged {
			all = append(all, newEntry(key, m))
		}
	}

	return all, nil
}
