package kvstore

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

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
