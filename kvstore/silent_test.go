package kvstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/testing/kvtest"
)

// TestARequestIsSentAgain: the server that received the first request may hang.
func TestARequestIsSentAgain(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	var received atomic.Int64
	answer := func(m *nats.Msg) {
		if received.Add(1) > 1 {
			_ = m.Respond([]byte("here"))
		}
	}
	if _, err := store.Conn.Subscribe("hung.once", answer); err != nil {
		t.Fatal(err)
	}
	if reply, err := store.Request(t.Context(), "hung.once", nil); err != nil || string(reply.Data) != "here" {
		t.Errorf("not answered: %v", err)
	}
	if _, err := store.Conn.Subscribe("hung.always", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	_, err := store.Request(t.Context(), "hung.always", nil)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "the server "+store.Conn.ConnectedServerName()+" answers, but JetStream does not") {
		t.Errorf("the error names no server: %v", err)
	}
}

// TestReadsAreSentAgainSoonerAfterASilence: while a server hangs, each read may reach it.
func TestReadsAreSentAgainSoonerAfterASilence(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	// With a wait of 2 s before the second copy, a read sends 7 copies within its time.
	const copies = 9
	for _, answered := range []int64{2, copies} {
		subject := fmt.Sprint("hung.", answered)
		var received atomic.Int64
		answer := func(m *nats.Msg) {
			if received.Add(1) == answered {
				_ = m.Respond([]byte("here"))
			}
		}
		if _, err := store.Conn.Subscribe(subject, answer); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Request(t.Context(), subject, nil); err != nil {
			t.Errorf("the read that copy %d answers: %v", answered, err)
		}
	}
}
