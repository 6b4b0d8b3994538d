package kvstore

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/testing/natstest"
)

// TestRoutedGivesUp: a caller that looks for the reason of a failed publish waits for another caller's format
// check no longer than its context.
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

// TestRoutedKnowsAnOutage: if the streams do not answer either, the account is not blamed.
func TestRoutedKnowsAnOutage(t *testing.T) {
	t.Parallel()
	s, err := New(natstest.Start(t).Connect(t), "", JoinedAPI)
	if err != nil {
		t.Fatal(err)
	}
	s.binding.complete, s.binding.epoch = true, s.Conn.Stats().Reconnects
	var blamed Unrouted
	if err := s.Routed(t.Context(), "muster.x", jetstream.ErrNoStreamResponse); !errors.Is(err, jetstream.ErrNoStreamResponse) || errors.As(err, &blamed) {
		t.Errorf("%T: %v", err, err)
	}
}
