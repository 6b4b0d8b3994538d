package reports

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/scan"
	"github.com/musterfleet/muster/model"
)

// Message, Range, Bounds, Subscription and Delivery are types of model, because package fleet uses them.
type (
	Message      = model.StoredReports
	Range        = model.ReportRange
	Bounds       = model.ReportBounds
	Subscription = model.ReportSubscription
	Delivery     = model.ReportDelivery
)

// Messages yields the messages of a range in the order in which they were stored. An error is
// the last thing it yields.
func (s Stream) Messages(ctx context.Context, r Range) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		names := s.store.Names()
		cfg, err := Filter{Node: r.Node, Kind: r.Kind, Since: r.Since}.consumer(names)
		if err != nil {
			yield(Message{}, err)
			return
		}
		switch {
		case r.Newest:
			cfg.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy
		case r.After > 0:
			cfg.DeliverPolicy, cfg.OptStartSeq, cfg.OptStartTime = jetstream.DeliverByStartSequencePolicy, r.After+1, nil
		}
		for m, err := range scan.Stream(ctx, s.store, names.Reports(), cfg, r.Follow) {
			if err != nil {
				yield(Message{}, err)
				return
			}
			if !yield(s.read(m), nil) {
				return
			}
		}
	}
}

// NewestMessage returns the last one; its sequence is 0 where there is none.
func (s Stream) NewestMessage(ctx context.Context) (Message, error) {
	names := s.store.Names()
	m, err := s.store.Last(ctx, names.Reports(), names.Report("*", "*", "*"))
	if errors.Is(err, model.ErrNotFound) {
		return Message{}, nil
	}
	if err != nil {
		return Message{}, err
	}

	return s.read(m), nil
}

// Event is the function Event as a method, for packages that do not import kvstore.
func (Stream) Event(r model.Report) ([]byte, error) { return Event(r) }

// Name returns a name of the stream for messages.
func (Stream) Name() string { return "stream of reports" }

// Age returns the creation time of the stream and its last sequence. A new stream counts from 1. The error wraps
// model.ErrNotFound if there is no stream.
func (s Stream) Age(ctx context.Context) (created time.Time, last uint64, err error) {
	names := s.store.Names()

	return s.store.StreamAge(ctx, names.Reports(), names.Report("*", "*", "*"))
}

// StoredAt returns the time at which a message was stored. The error wraps model.ErrNotFound if it is not there.
func (s Stream) StoredAt(ctx context.Context, sequence uint64) (time.Time, error) {
	names := s.store.Names()

	return s.store.StoredAt(ctx, names.Reports(), names.Report("*", "*", "*"), sequence)
}

// End returns the last sequence of the stream as its leader has it, 0 where it has nothing, see kvstore.Store.StreamEnd.
func (s Stream) End(ctx context.Context) (uint64, error) {
	names := s.store.Names()

	return s.store.StreamEnd(ctx, names.Reports(), names.Report("*", "*", "*"))
}

// Bounds returns what the stream keeps. The error wraps model.ErrNotFound where there is none.
func (s Stream) Bounds(ctx context.Context) (Bounds, error) {
	names := s.store.Names()
	found, err := s.store.Infos(ctx, names.Report("*", "*", "*"))
	if err != nil {
		return Bounds{}, err
	}
	info, err := found.Of(names.Reports())
	if err != nil {
		return Bounds{}, err
	}
	out := Bounds{Oldest: info.State.FirstTime, Dropped: info.State.FirstSeq > 1, PerSubject: int(max(info.Config.MaxMsgsPer, 0))}
	if info.State.Msgs == 0 {
		out.Oldest = time.Time{}
	}

	return out, nil
}

// read decodes a message.
func (s Stream) read(m kvstore.Message) Message {
	out := Message{Sequence: m.Sequence, Stored: m.Time, Size: len(m.Data)}
	out.Reports, out.Invalid = s.reportsOf(m)

	return out
}
