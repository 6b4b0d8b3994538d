package kvstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// series is a bucket or stream of the fleet that can be recreated or restored.
type series struct {
	store *Store
	// label names the series in messages. subject matches all its messages.
	label, stream, subject string
}

func newSeries(s *Store, bucket string) series {
	return series{s, "bucket " + bucket, KVStream(bucket), KVSubject(bucket, ">")}
}

// Name returns a name for messages.
func (s series) Name() string { return s.label }

// Age returns the creation time and the last sequence. A recreated stream counts from 1, and a restored
// one continues from an older sequence. The error wraps model.ErrNotFound if the stream does not exist.
func (s series) Age(ctx context.Context) (created time.Time, last uint64, err error) {
	info, err := s.info(ctx)
	if err != nil {
		return time.Time{}, 0, err
	}

	return info.Created, info.State.LastSeq, nil
}

func (s series) info(ctx context.Context) (*api.StreamInfo, error) {
	found, err := s.store.Infos(ctx, s.subject)
	if err != nil {
		return nil, err
	}

	return found.Of(s.stream)
}

// StoredAt returns the time of the message with a sequence. The error wraps model.ErrNotFound if the
// stream lacks the message.
func (s series) StoredAt(ctx context.Context, sequence uint64) (time.Time, error) {
	p, err := s.store.Page(ctx, Query{Stream: s.stream, Subject: s.subject, From: sequence}, 1)
	switch {
	case err != nil:
		return time.Time{}, err
	case len(p.Messages) == 0 || p.Messages[0].Sequence != sequence:
		return time.Time{}, fmt.Errorf("message %d of %s: %w", sequence, s.stream, model.ErrNotFound)
	default:
		return p.Messages[0].Time, nil
	}
}

// bucket is a key-value bucket that operators write.
type bucket struct {
	series
	name string
	// kind precedes keys in messages.
	kind string
	// check returns an error for a key that the bucket does not take.
	check func(ctx context.Context, key string) error
	// by is the unverified author of writes.
	by string
	// errChanged reports that the key has a newer revision than the one to replace.
	errChanged error
	// value decodes a revision with its value, and change a revision in the list of changes.
	value, change func(key string, m Message) model.Entry
}

func (b bucket) key(m Message) string { return strings.TrimPrefix(m.Subject, KVSubject(b.name, "")) }

// write stores a value, or a removal with a proof, and returns its revision.
func (b bucket) write(ctx context.Context, key string, value []byte, isRemoval bool, opts ...jetstream.PublishOpt) (uint64, error) {
	m := NewMsg(KVSubject(b.name, key), nil)
	if isRemoval {
		m = NewDeletion(m.Subject)
	}
	m.Data = value
	SetAuthor(m, b.by)
	revision, err := b.store.Publish(ctx, m, opts...)
	if IsReplaced(err) {
		err = b.errChanged
	}

	return revision, err
}

// Delete stores the removal of a key and returns its revision, also for an unknown key: a node may run an
// assignment of an earlier bucket. The proof is for nodes that require signatures and may be nil. The error
// wraps model.ErrInvalidName.
func (b bucket) Delete(ctx context.Context, key string, proof []byte) (uint64, error) {
	return b.put(ctx, "delete "+b.kind+key, key, proof, true)
}

// put stores a value, or a removal with a proof, under a valid key. what describes the write in errors.
func (b bucket) put(ctx context.Context, what, key string, value []byte, isRemoval bool, opts ...jetstream.PublishOpt) (revision uint64, err error) {
	if err = b.check(ctx, key); err == nil {
		revision, err = b.write(ctx, key, value, isRemoval, opts...)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}

	return revision, nil
}

// Get reads the newest revision of a key. The error wraps model.ErrNotFound for a removed key, with the
// revision of the removal, and for an unknown key, with revision zero. It wraps ErrUnreadable or
// ErrServerHeaders for a value that must not be used, and model.ErrInvalidName.
func (b bucket) Get(ctx context.Context, key string) (model.Entry, error) {
	return b.get(ctx, key, b.store.Last)
}

// Current reads a key like Get, but waits up to a second for a lagging replica. The user needs
// permission to write the key. The error wraps ErrLags if the replica still lags.
func (b bucket) Current(ctx context.Context, key string) (model.Entry, error) {
	return b.get(ctx, key, b.store.CurrentMessage)
}

func (b bucket) get(ctx context.Context, key string, read func(ctx context.Context, stream, subject string) (Message, error)) (model.Entry, error) {
	if err := b.check(ctx, key); err != nil {
		return model.Entry{}, err
	}
	m, err := read(ctx, b.stream, KVSubject(b.name, key))
	if m, err = used(b.stream, m, err); err != nil {
		return model.Entry{Key: key, Revision: m.Sequence}, fmt.Errorf("%s%s: %w", b.kind, key, err)
	}

	return b.value(key, m), nil
}

// scan yields the messages of some keys, which may contain wildcards, or of all keys.
func (b bucket) scan(ctx context.Context, cfg jetstream.OrderedConsumerConfig, keys ...string) iter.Seq2[Message, error] {
	if len(keys) == 0 {
		keys = []string{">"}
	}
	for _, key := range keys {
		cfg.FilterSubjects = append(cfg.FilterSubjects, KVSubject(b.name, key))
	}

	return scanStream(ctx, b.store, b.stream, cfg, false)
}

// keysOf returns patterns for the keys of families. The error wraps model.ErrInvalidName.
func keysOf(families []string) ([]string, error) {
	var keys []string
	for _, f := range families {
		if err := model.CheckFamily(f); err != nil {
			return nil, err
		}
		keys = append(keys, model.Key(f, ">"))
	}

	return keys, nil
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

var errTooMuch = errors.New("too much to look at")

// newest returns at most most revisions, newest first, and reports whether the bucket may have more. With isShared, one
// family gets a quarter of the result unless the other families cannot fill the rest. So a user with write access to one
// family cannot hide changes to the others.
func (b bucket) newest(ctx context.Context, most int, isShared, headersOnly bool) (all []model.Entry, more bool, err error) {
	last, err := b.store.Last(ctx, b.stream, b.subject)
	if errors.Is(err, model.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	isEnough := func() bool { return !isShared && len(all) > most || isShared && fillsQuota(all, most) }
	// The bucket may have dropped most revisions, so each window is wider than the previous one. When a window
	// holds too much, the search continues inside it with smaller windows and ignores older revisions.
	to, window, by, end, size := last.Sequence+1, uint64(max(most, 1)), uint64(widenWindow), uint64(1), 0
	for to > end && len(all) < searchRevisions*most && size < searchBytes && !isEnough() {
		window = min(window, to-end)
		older, bytes, err := b.between(ctx, to-window, to, searchRevisions*most-len(all), searchBytes-size, headersOnly)
		switch {
		case errors.Is(err, errTooMuch):
			end, window, by = to-window, max(window/widenWindow, 1), 1
		case err != nil:
			return nil, false, err
		default:
			all, to, size = append(older, all...), to-window, size+bytes
			window *= by
		}
	}
	more = to > 1 || len(all) > most
	slices.Reverse(all)
	if !isShared {
		return all[:min(len(all), most)], more, nil
	}

	return ShareByFamily(all, most, entryFamily), more, nil
}

// between returns the revisions in [from, to), oldest first, and their total size in bytes. The error wraps errTooMuch if
// the range holds more than most revisions or more than maxBytes bytes. A single revision may exceed the byte limit.
func (b bucket) between(ctx context.Context, from, to uint64, most, maxBytes int, headersOnly bool) (all []model.Entry, size int, err error) {
	cfg := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from, HeadersOnly: headersOnly}
	for m, err := range b.scan(ctx, cfg) {
		if err != nil {
			return nil, 0, err
		}
		if m.Sequence >= to {
			break
		}
		all = append(all, b.change(b.key(m), m))
		if size += messageSize(m); len(all) > most || len(all) > 1 && size > maxBytes {
			return nil, 0, errTooMuch
		}
	}

	return all, size, nil
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
