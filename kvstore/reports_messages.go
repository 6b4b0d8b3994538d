package kvstore

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// Message is what the stream stored at once: a report, or a batch of one run.
type ReportMessage struct {
	// Sequence is its number in the stream, Stored when the server took it: the times in
	// reports are those of nodes.
	Sequence uint64
	Stored   time.Time
	// Size is how many bytes it has.
	Size    int
	Reports []model.Report
	// Invalid is why some of it cannot be read, nil where all can; it wraps ErrInvalidEvent.
	Invalid error
}

// Range is a part of the stream. What is zero has no bound.
type ReportRange struct {
	// Node and Kind select some reports.
	Node, Kind string
	// After leaves out what has this sequence or a lower one, Since what was stored before.
	After uint64
	Since time.Time
	// Newest selects the last message of each subject: of each node, kind and outcome.
	Newest bool
	// Follow goes on with what arrives, until the context ends.
	Follow bool
}

// Messages yields the messages of a range in the order in which they were stored. An error is
// the last thing it yields.
func (s Reports) Messages(ctx context.Context, r ReportRange) iter.Seq2[ReportMessage, error] {
	return func(yield func(ReportMessage, error) bool) {
		names := s.store.Names()
		cfg, err := ReportFilter{Node: r.Node, Kind: r.Kind, Since: r.Since}.consumer(names)
		if err != nil {
			yield(ReportMessage{}, err)
			return
		}
		switch {
		case r.Newest:
			cfg.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy
		case r.After > 0:
			cfg.DeliverPolicy, cfg.OptStartSeq, cfg.OptStartTime = jetstream.DeliverByStartSequencePolicy, r.After+1, nil
		}
		for m, err := range scanStream(ctx, s.store, names.Reports(), cfg, r.Follow) {
			if err != nil {
				yield(ReportMessage{}, err)
				return
			}
			if !yield(s.read(m), nil) {
				return
			}
		}
	}
}

// NewestMessage returns the last one; its sequence is 0 where there is none.
func (s Reports) NewestMessage(ctx context.Context) (ReportMessage, error) {
	names := s.store.Names()
	m, err := s.store.Last(ctx, names.Reports(), names.Report("*", "*", "*"))
	if errors.Is(err, model.ErrNotFound) {
		return ReportMessage{}, nil
	}
	if err != nil {
		return ReportMessage{}, err
	}

	return s.read(m), nil
}

// Age returns since when there is this stream, and its last sequence: one that was created again counts
// from 1. The error wraps model.ErrNotFound where there is none.
func (s Reports) Age(ctx context.Context) (created time.Time, last uint64, err error) {
	names := s.store.Names()

	return s.store.StreamAge(ctx, names.Reports(), names.Report("*", "*", "*"))
}

// End returns the last sequence of the stream as its leader has it, 0 where it has nothing, see kvstore.Store.StreamEnd.
func (s Reports) End(ctx context.Context) (uint64, error) {
	names := s.store.Names()

	return s.store.StreamEnd(ctx, names.Reports(), names.Report("*", "*", "*"))
}

// Bounds are what the stream keeps.
type ReportBounds struct {
	// Oldest is when the oldest report was stored that is there, zero where there is none. Dropped
	// reports whether there were older ones.
	Oldest  time.Time
	Dropped bool
	// PerSubject is how many messages of one node, kind and outcome are kept, 0 for any number.
	PerSubject int
}

// Bounds returns what the stream keeps. The error wraps model.ErrNotFound where there is none.
func (s Reports) Bounds(ctx context.Context) (ReportBounds, error) {
	names := s.store.Names()
	found, err := s.store.Infos(ctx, names.Report("*", "*", "*"))
	if err != nil {
		return ReportBounds{}, err
	}
	info, err := found.Of(names.Reports())
	if err != nil {
		return ReportBounds{}, err
	}
	out := ReportBounds{Oldest: info.State.FirstTime, Dropped: info.State.FirstSeq > 1, PerSubject: int(max(info.Config.MaxMsgsPer, 0))}
	if info.State.Msgs == 0 {
		out.Oldest = time.Time{}
	}

	return out, nil
}

// read decodes a message.
func (s Reports) read(m Message) ReportMessage {
	out := ReportMessage{Sequence: m.Sequence, Stored: m.Time, Size: len(m.Data)}
	out.Reports, out.Invalid = s.reportsOf(m)

	return out
}
