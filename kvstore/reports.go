package kvstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// Reports accesses the stream of reports.
type Reports struct{ series }

// NewReports returns the reports of the fleet of s.
func NewReports(s *Store) Reports {
	return Reports{series{s, "stream of reports", s.Names.Reports, s.Names.Report("*", "*", "*")}}
}

// MaxMessage returns the maximum message size of the stream in bytes, or the default while it is
// unknown.
func (s Reports) MaxMessage() int64 {
	return s.store.Sizes.Max(s.stream, DefaultReportMax)
}

// PublishReports stores reports in order without waiting for each acknowledgement. It returns how many
// of the first reports the server certainly has. Later reports may be stored too, and can be sent
// again. The error belongs to the first report that was not stored. It wraps model.ErrUndeliverable if
// that report can never be stored.
func (s Reports) PublishReports(ctx context.Context, reports []model.Report) (int, error) {
	if err := s.store.Ready(ctx); err != nil {
		return 0, fmt.Errorf("publish reports: %w", err)
	}
	publishing := ctx
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	subjects := make([]string, len(reports))
	for i, r := range reports {
		subjects[i] = s.subjectOf(r)
	}
	permitted, done := s.store.Denials.Permitted(ctx, To(subjects...))
	defer func() { _ = done(nil) }()
	var sent []jetstream.PubAckFuture
	var failed error
	connections := s.store.Conn.Stats().Reconnects
	for i, r := range reports {
		m, err := s.message(r)
		if err == nil && i > 0 && s.isCut(connections) {
			err = nats.ErrDisconnected
		}
		var future jetstream.PubAckFuture
		if err == nil {
			// A retry of the client would store it behind later reports.
			future, err = s.store.JetStream().PublishMsgAsync(m, jetstream.WithRetryAttempts(0))
		}
		if err != nil {
			failed = fmt.Errorf("publish report %s: %w", r.ID, err)
			break
		}
		if sent = append(sent, future); i > 0 {
			continue
		}
		// If the first report is not stored, send no other: the stream may be created in between.
		if err := s.stored(permitted, future); err != nil {
			err = s.store.ExplainUnstored(publishing, subjects[0], s.store.Routed(ctx, subjects[0], done(err)))
			return 0, fmt.Errorf("publish report %s: %w", reports[0].ID, err)
		}
	}
	for i := 1; i < len(sent); i++ {
		if err := s.stored(permitted, sent[i]); err != nil {
			return i, fmt.Errorf("publish report %s: %w", reports[i].ID, done(err))
		}
	}

	return len(sent), failed
}

// isCut reports whether the connection was lost since it had reconnected connections times. The client
// buffers later messages for the next connection. That would store them before the lost messages,
// which are published again.
func (s Reports) isCut(connections uint64) bool {
	nc := s.store.Conn

	return !nc.IsConnected() || nc.Stats().Reconnects != connections
}

// PublishBatch stores at least two transactions of one run as one message, all or none. The first and
// the last report identify the message, so a repeated one is stored once. The error wraps
// model.ErrUndeliverable if the batch can never be stored.
func (s Reports) PublishBatch(ctx context.Context, reports []model.Report) error {
	first, last := reports[0], reports[len(reports)-1]
	data, err := encodeBatch(reports)
	if err == nil {
		m := NewMsg(s.store.Names.Report(first.Node, model.KindTransaction, BatchOutcome), data)
		m.Header.Set("Content-Type", batchContentType)
		m.Header.Set(nats.MsgIdHdr, first.ID+"-"+last.ID)
		m.Header.Set(runHeader, first.RunID)
		_, err = s.store.Publish(ctx, m)
	}
	if err != nil {
		return fmt.Errorf("publish reports %s to %s: %w", first.ID, last.ID, s.undeliverable(err))
	}

	return nil
}

// undeliverable wraps permanent errors with model.ErrUndeliverable: of an invalid report, and of a
// message that is too large. After the latter the limit of the stream is read again.
func (s Reports) undeliverable(err error) error {
	const exceedsMaximum = 10054
	var refused jetstream.JetStreamError
	switch {
	case errors.As(err, &refused) && refused.APIError() != nil && refused.APIError().ErrorCode == exceedsMaximum:
		s.store.Sizes.Refresh()
		return fmt.Errorf("%w: %w: %w", model.ErrUndeliverable, model.ErrTooLarge, err)
	case errors.Is(err, ErrInvalidEvent), errors.Is(err, model.ErrTooLarge):
		return fmt.Errorf("%w: %w", model.ErrUndeliverable, err)
	default:
		return err
	}
}

// stored waits for the acknowledgement of a message. The error wraps model.ErrUndeliverable if the
// message is too large.
func (s Reports) stored(ctx context.Context, future jetstream.PubAckFuture) error {
	select {
	case <-future.Ok():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case err := <-future.Err():
		return s.undeliverable(err)
	}
}

func (s Reports) subjectOf(r model.Report) string {
	return s.store.Names.Report(r.Node, r.Kind, string(r.Outcome))
}

func (s Reports) message(r model.Report) (*nats.Msg, error) {
	data, err := s.Event(r)
	if err == nil {
		err = s.store.Sizes.CheckMessage("report "+r.ID, data)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", model.ErrUndeliverable, err)
	}
	m := NewMsg(s.subjectOf(r), data)
	m.Header.Set("Content-Type", contentType)
	m.Header.Set(nats.MsgIdHdr, r.ID)

	return m, nil
}

// Reports yields the reports of a range in stored order. It yields an error that wraps ErrInvalidEvent for a message with
// undecodable reports and continues. Any other error is the last item.
func (s Reports) Reports(ctx context.Context, r model.ReportRange) iter.Seq2[model.Report, error] {
	return func(yield func(model.Report, error) bool) {
		for m, err := range s.Messages(ctx, r) {
			for _, one := range m.Reports {
				if (r.Outcome == "" || r.Outcome == string(one.Outcome)) && !yield(one, nil) {
					return
				}
			}
			if err = cmp.Or(err, m.Invalid); err != nil && !yield(model.Report{}, err) {
				return
			}
		}
	}
}

// rangeConfig returns a consumer of the messages of a range. A batch may have reports of any outcome.
func rangeConfig(n Names, r model.ReportRange) (jetstream.OrderedConsumerConfig, error) {
	var cfg jetstream.OrderedConsumerConfig
	nodes := r.Nodes
	if r.Node != "" || len(nodes) == 0 {
		nodes = []string{r.Node}
	}
	for _, node := range nodes {
		parts := []string{node, r.Kind, r.Outcome}
		for i, part := range parts {
			if part == "" {
				parts[i] = "*"
			} else if !model.IsToken(part) {
				return cfg, fmt.Errorf("%w: %q: write one word each for node, kind and outcome", model.ErrInvalidName, strings.Join(parts, " "))
			}
		}
		cfg.FilterSubjects = append(cfg.FilterSubjects, n.Report(parts[0], parts[1], parts[2]))
		if r.Outcome != "" && (r.Kind == "" || r.Kind == model.KindTransaction) {
			cfg.FilterSubjects = append(cfg.FilterSubjects, n.Report(parts[0], model.KindTransaction, BatchOutcome))
		}
	}
	switch {
	case r.Newest:
		cfg.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy
	case r.After > 0:
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, r.After+1
	case !r.Since.IsZero():
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &r.Since
	}

	return cfg, nil
}

// Messages yields the messages of a range in stored order. An error is the last item.
func (s Reports) Messages(ctx context.Context, r model.ReportRange) iter.Seq2[model.StoredReports, error] {
	return func(yield func(model.StoredReports, error) bool) {
		cfg, err := rangeConfig(s.store.Names, r)
		if err != nil {
			yield(model.StoredReports{}, err)
			return
		}
		for m, err := range scanStream(ctx, s.store, s.stream, cfg, r.Follow) {
			if err != nil {
				yield(model.StoredReports{}, err)
				return
			}
			if !yield(s.read(m), nil) {
				return
			}
		}
	}
}

// NewestMessage returns the last message, with sequence 0 if there is none.
func (s Reports) NewestMessage(ctx context.Context) (model.StoredReports, error) {
	m, err := s.store.Last(ctx, s.stream, s.subject)
	if errors.Is(err, model.ErrNotFound) {
		return model.StoredReports{}, nil
	}
	if err != nil {
		return model.StoredReports{}, err
	}

	return s.read(m), nil
}

// End returns the last sequence according to the leader of the stream, or 0 if the stream is empty. A lagging server may
// answer direct gets with older messages.
func (s Reports) End(ctx context.Context) (uint64, error) {
	info, err := s.info(ctx)
	if err != nil || info.State.Msgs == 0 {
		return 0, err
	}

	return info.State.LastSeq, nil
}

// Bounds returns the retention of the stream. The error wraps model.ErrNotFound if the stream does not
// exist.
func (s Reports) Bounds(ctx context.Context) (model.ReportBounds, error) {
	info, err := s.info(ctx)
	if err != nil {
		return model.ReportBounds{}, err
	}
	out := model.ReportBounds{Oldest: info.State.FirstTime, Dropped: info.State.FirstSeq > 1, PerSubject: int(max(info.Config.MaxMsgsPer, 0))}
	if info.State.Msgs == 0 {
		out.Oldest = time.Time{}
	}

	return out, nil
}

func (s Reports) read(m Message) model.StoredReports {
	out := model.StoredReports{Sequence: m.Sequence, Stored: m.Time, Size: len(m.Data)}
	out.Reports, out.Invalid = decodeReports(s.store.Names, m)

	return out
}

// Newest returns the newest report of a node for each kind and outcome, the newest first. A batch
// contributes all its reports. The number of reads does not depend on what the node publishes. The
// error wraps an ErrInvalidEvent for each unreadable report, and the readable ones are returned
// anyway. It wraps model.ErrInvalidName for an invalid node.
func (s Reports) Newest(ctx context.Context, node string) ([]model.Report, error) {
	if err := model.CheckNode(node, nil); err != nil {
		return nil, err
	}
	subjects := s.store.Names.ReportSubjects(node)
	found, failed := make([][]model.Report, len(subjects)), make([]error, len(subjects))
	var reading sync.WaitGroup
	for i, subject := range subjects {
		reading.Go(func() { found[i], failed[i] = s.newestOf(ctx, subject) })
	}
	reading.Wait()
	all := slices.Concat(found...)
	slices.SortStableFunc(all, func(a, b model.Report) int { return b.Time.Compare(a.Time) })

	return all, errors.Join(failed...)
}

func (s Reports) newestOf(ctx context.Context, subject string) (all []model.Report, failed error) {
	m, err := s.store.Last(ctx, s.stream, subject)
	switch {
	case errors.Is(err, model.ErrNotFound):
		return nil, nil
	case errors.Is(err, ErrUnreadable):
		return nil, fmt.Errorf("%w on %s: %w", ErrInvalidEvent, subject, err)
	case err != nil:
		return nil, err
	}
	return decodeReports(s.store.Names, m)
}

// subscriptionKept is the time after which the server forgets a subscription that has no reader.
const subscriptionKept = 31 * 24 * time.Hour

// Deliver yields the messages of a subscription until ctx ends. An error is the last item. It wraps
// model.ErrInvalidName if no report has the kinds and outcomes, or model.ErrOtherAccount.
func (s Reports) Deliver(ctx context.Context, sub model.ReportSubscription) iter.Seq2[model.ReportDelivery, error] {
	return func(yield func(model.ReportDelivery, error) bool) {
		cfg, err := consumer(sub, s.store.Names)
		if err != nil {
			yield(model.ReportDelivery{}, err)
			return
		}
		for d, err := range scanDurable(ctx, s.store, s.stream, cfg) {
			if err != nil {
				yield(model.ReportDelivery{}, err)
				return
			}
			if !yield(model.ReportDelivery{StoredReports: s.read(d.Message), Receipt: d}, nil) {
				return
			}
		}
	}
}

// CheckSubscription returns an error if Deliver would reject the subscription.
func (s Reports) CheckSubscription(sub model.ReportSubscription) error {
	_, err := consumer(sub, s.store.Names)

	return err
}

func consumer(sub model.ReportSubscription, n Names) (jetstream.ConsumerConfig, error) {
	cfg := jetstream.ConsumerConfig{
		Durable: sub.Name, DeliverPolicy: jetstream.DeliverNewPolicy, AckPolicy: jetstream.AckExplicitPolicy, AckWait: model.ReportHold, MaxAckPending: 1,
		InactiveThreshold: subscriptionKept,
	}
	switch {
	case !model.IsToken(sub.Name):
		return cfg, fmt.Errorf("%w: %q", model.ErrInvalidName, sub.Name)
	case sub.After > 0:
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, sub.After+1
	case sub.All:
		cfg.DeliverPolicy = jetstream.DeliverAllPolicy
	}
	has := func(all []string, word string) bool { return len(all) == 0 || slices.Contains(all, word) }
	batches := false
	for _, subject := range n.ReportSubjects("*") {
		parts := strings.Split(subject, ".")
		kind, outcome := parts[len(parts)-2], parts[len(parts)-1]
		switch {
		case outcome == BatchOutcome || !has(sub.Kinds, kind) || !has(sub.Outcomes, outcome):
			continue
		case kind == model.KindTransaction:
			batches = true
		}
		cfg.FilterSubjects = append(cfg.FilterSubjects, subject)
	}
	if batches {
		cfg.FilterSubjects = append(cfg.FilterSubjects, n.Report("*", model.KindTransaction, BatchOutcome))
	}
	if len(cfg.FilterSubjects) == 0 {
		return cfg, fmt.Errorf("%w: no report of the kinds %s has one of the outcomes %s", model.ErrInvalidName, sub.Kinds, sub.Outcomes)
	}

	return cfg, nil
}

// Remove removes all reports of a node. Only administrators may do that.
func (s Reports) Remove(ctx context.Context, node string) error {
	if err := model.CheckNode(node, nil); err != nil {
		return err
	}
	stream, err := s.store.JetStream().Stream(ctx, s.stream)
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(s.store.Names.Report(node, "*", "*")))
	}
	if err != nil {
		return fmt.Errorf("remove the reports of node %s: %w", node, err)
	}

	return nil
}
