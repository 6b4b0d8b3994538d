package kvstore

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/testing/natstest"
)

// TestRoutedGivesUp: whoever asks why nothing takes a message does not wait for another
// call, which checks the formats of the fleet meanwhile, longer than its context lasts.
func TestRoutedGivesUp(t *testing.T) {
	t.Parallel()
	s, err := New(natstest.Start(t).Connect(t), "", JoinedAPI)
	if err != nil {
		t.Fatal(err)
	}
	s.binding.lock <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Routed(ctx, "muster.x", jetstream.ErrNoStreamResponse); !errors.Is(err, jetstream.ErrNoStreamResponse) {
		t.Error(err)
	}
}

// TestRoutedKnowsAnOutage: where nobody answers for the streams either, the account is not to blame.
func TestRoutedKnowsAnOutage(t *testing.T) {
	t.Parallel()
	s, err := New(natstest.Start(t).Connect(t), "", JoinedAPI)
	if err != nil {
		t.Fatal(err)
	}
	s.binding.complete, s.binding.epoch = true, s.nc.Stats().Reconnects
	var blamed Unrouted
	if err := s.Routed(t.Context(), "muster.x", jetstream.ErrNoStreamResponse); !errors.Is(err, jetstream.ErrNoStreamResponse) || errors.As(err, &blamed) {
		t.Errorf("%T: %v", err, err)
	}
}
