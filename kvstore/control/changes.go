package control

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/answer"
	"github.com/musterfleet/muster/model"
)

// Changes returns the newest revisions of the control keys, the newest first: those among the last
// so many that the bucket stored, as far as it keeps them. It has 16 of each key.
func (b Bucket) Changes(ctx context.Context, most int) ([]model.Entry, error) {
	if err := b.there(ctx); err != nil {
		return nil, err
	}
	bucket := b.store.Names().Control()
	stream, all := kvstore.KVStream(bucket), kvstore.KVSubject(bucket, ">")
	last, err := b.store.Last(ctx, stream, all)
	if errors.Is(err, model.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	from := uint64(1)
	if last.Sequence > uint64(most) {
		from = last.Sequence - uint64(most) + 1
	}
	var out []model.Entry
	for more := true; more && len(out) < most; {
		var page kvstore.Page
		page, err = b.store.Page(ctx, answer.Asked{Stream: stream, Subject: all, From: from}, batch)
		for _, m := range page.Messages {
			out = append(out, changeOf(strings.TrimPrefix(m.Subject, kvstore.KVSubject(bucket, "")), m))
		}
		if err != nil {
			return nil, err
		}
		from, more = page.Next, page.More
	}
	slices.Reverse(out)

	return out, nil
}

// batch is how many revisions are read at once.
const batch = 256

func changeOf(key string, m kvstore.Message) model.Entry {
	out := newEntry(key, m)
	if err := m.Refusal(); err != nil {
		out.Refused, out.Value = err.Error(), nil
	}

	return out
}
