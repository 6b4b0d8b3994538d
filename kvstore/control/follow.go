package control

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/answer"
	"github.com/musterfleet/muster/kvstore/scan"
	"github.com/musterfleet/muster/model"
)

// Followed is the newest revision of a control key, deletions included.
type Followed struct {
	model.Entry
	// Complete is that all are known that were stored when Follow was called. An empty bucket is
	// complete with an Entry without a key.
	Complete bool
}

// Follow yields the newest revision of each control key, in the order in which they were stored,
// and then each that is stored, until ctx ends: one consumer for whoever follows all nodes. What
// must not be used is Refused. An error is the last thing it yields; it wraps
// kvstore.ErrNotProvisioned where the fleet has no such bucket.
func (b Bucket) Follow(ctx context.Context) iter.Seq2[Followed, error] {
	return func(yield func(Followed, error) bool) {
		bucket := b.store.Names().Control()
		stream, all := kvstore.KVStream(bucket), kvstore.KVSubject(bucket, ">")
		err := b.there(ctx)
		var last kvstore.Message
		if err == nil {
			last, err = b.store.Last(ctx, stream, all)
		}
		switch {
		case errors.Is(err, answer.ErrUnreadable): // it is yielded as any other
		case errors.Is(err, model.ErrNotFound):
			if !yield(Followed{Complete: true}, nil) {
				return
			}
		case err != nil:
			yield(Followed{}, err)
			return
		}
		cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{all}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy}
		for m, err := range scan.Stream(ctx, b.store, stream, cfg, true) {
			if err != nil {
				yield(Followed{}, err)
				return
			}
			f := Followed{Complete: m.Sequence >= last.Sequence}
			if key := strings.TrimPrefix(m.Subject, kvstore.KVSubject(bucket, "")); model.IsControlKey(key) {
				f.Entry = changeOf(key, m)
				f.Deleted = f.Deleted && f.Refused == ""
			}
			if !yield(f, nil) {
				return
			}
		}
	}
}
