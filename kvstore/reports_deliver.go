package kvstore

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// subscriptionKept is the time after which the server forgets a subscription that has no reader.
const subscriptionKept = 31 * 24 * time.Hour

// Deliver yields the messages of a subscription until ctx ends. An error is the last item. It wraps
// model.ErrInvalidName if no report has the kinds and outcomes, or model.ErrOtherAccount.
func (s Reports) Deliver(ctx context.Context, sub ReportSubscription) iter.Seq2[ReportDelivery, error] {
	return func(yield func(ReportDelivery, error) bool) {
		cfg, err := consumer(sub, s.store.Names())
		if err != nil {
			yield(ReportDelivery{}, err)
			return
		}
		for d, err := range scanDurable(ctx, s.store, s.store.Names().Reports(), cfg) {
			if err != nil {
				yield(ReportDelivery{}, err)
				return
			}
			if !yield(ReportDelivery{StoredReports: s.read(d.Message), Receipt: d}, nil) {
				return
			}
		}
	}
}

// CheckSubscription returns an error if Deliver would reject the subscription.
func (s Reports) CheckSubscription(sub ReportSubscription) error {
	_, err := consumer(sub, s.store.Names())

	return err
}

// consumer returns the configuration of the durable consumer of a subscription.
func consumer(sub ReportSubscription, n Names) (jetstream.ConsumerConfig, error) {
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
