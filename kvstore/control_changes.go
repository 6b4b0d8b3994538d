package kvstore

import (
	"context"
	"errors"
	"strings"

	"github.com/musterfleet/muster/model"
)

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
