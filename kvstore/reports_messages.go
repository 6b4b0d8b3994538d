package kvstore

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// ReportMessage, ReportRange, ReportBounds, ReportSubscription and ReportDelivery are types of model, because package fleet uses them.
type (
	ReportMessage      = model.StoredReports
	ReportRange        = model.ReportRange
	ReportBounds       = model.ReportBounds
	ReportSubscription = model.ReportSubscription
	ReportDelivery     = model.ReportDelivery
)

// Messages yields the messages of a range in stored order. An error is the last item.
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

// NewestMessage returns the last message, with sequence 0 if there is none.
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

// Event is the function EncodeEvent as a method, for packages outside kvstore.
func (Reports) Event(r model.Report) ([]byte, error) { return EncodeEvent(r) }

// Name returns a name of the stream for messages.
func (Reports) Name() string { return "stream of reports" }

// Age returns the creation time of the stream and its last sequence. A new stream counts from 1. The error wraps
// model.ErrNotFound if there is no stream.
func (s Reports) Age(ctx context.Context) (created time.Time, last uint64, err error) {
	names := s.store.Names()

	return s.store.StreamAge(ctx, names.Reports(), names.Report("*", "*", "*"))
}

// StoredAt returns the time at which a message was stored. The error wraps model.ErrNotFound if it is not there.
func (s Reports) StoredAt(ctx context.Context, sequence uint64) (time.Time, error) {
	names := s.store.Names()

	return s.store.StoredAt(ctx, names.Reports(), names.Report("*", "*", "*"), sequence)
}

// End returns the last sequence according to the leader of the stream, or 0 if the stream is empty.
// See Store.StreamEnd.
func (s Reports) End(ctx context.Context) (uint64, error) {
	names := s.store.Names()

	return s.store.StreamEnd(ctx, names.Reports(), names.Report("*", "*", "*"))
}

// Bounds returns the retention of the stream. The error wraps model.ErrNotFound if the stream does not
// exist.
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
