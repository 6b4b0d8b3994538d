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

// Subscription reads the reports that are stored from now on, and goes on where it was when it is
// read again: each until it is done. Readers of the same name share what it has, one message at
// a time and in order, so that one of two waits until the other is gone.
type ReportSubscription struct {
	// Name is one word.
	Name string
	// Kinds and Outcomes select reports, all where they are empty. A batch is delivered whole,
	// whatever outcomes it has.
	Kinds, Outcomes []string
	// All begins with the oldest report, After behind a sequence, where nobody has read yet.
	All   bool
	After uint64
}

// The bounds of a subscription.
const (
	// SubscriptionHold is how long a message is left to its reader: after half of it Hold it again.
	SubscriptionHold = 30 * time.Second
	// subscriptionKept is for how long a subscription that nobody reads is remembered.
	subscriptionKept = 31 * 24 * time.Hour
)

// Delivery is a message of a subscription.
type ReportDelivery struct {
	ReportMessage
	Delivery
}

// Deliver yields the messages of a subscription until ctx ends. An error is the last thing yielded.
// It wraps model.ErrInvalidName where no report is of the kinds and outcomes, and
// scan.ErrOtherAccount.
func (s Reports) Deliver(ctx context.Context, sub ReportSubscription) iter.Seq2[ReportDelivery, error] {
	return func(yield func(ReportDelivery, error) bool) {
		cfg, err := sub.consumer(s.store.Names())
		if err != nil {
			yield(ReportDelivery{}, err)
			return
		}
		for d, err := range scanDurable(ctx, s.store, s.store.Names().Reports(), cfg) {
			if err != nil {
				yield(ReportDelivery{}, err)
				return
			}
			if !yield(ReportDelivery{s.read(d.Message), d}, nil) {
				return
			}
		}
	}
}

// CheckSubscription returns the error that Deliver would for what is wrong with a subscription itself.
func (s Reports) CheckSubscription(sub ReportSubscription) error {
	_, err := sub.consumer(s.store.Names())

	return err
}

// consumer returns the configuration of the consumer that remembers where a subscription is.
func (sub ReportSubscription) consumer(n Names) (jetstream.ConsumerConfig, error) {
	cfg := jetstream.ConsumerConfig{
		Durable: sub.Name, DeliverPolicy: jetstream.DeliverNewPolicy, AckPolicy: jetstream.AckExplicitPolicy, AckWait: SubscriptionHold, MaxAckPending: 1,
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
