package kvstore

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore/jsapi"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestRoutedGivesUp: whoever asks why nothing takes a message does not wait for another
// call, which checks the formats of the fleet meanwhile, longer than its context lasts.
func TestRoutedGivesUp(t *testing.T) {
	t.Parallel()
	s, err := New(natstest.Start(t).Connect(t), "", jsapi.Joined)
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
