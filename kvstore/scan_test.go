package kvstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/testing/kvtest"
)

// Whatever headers a message is stored with, it ends no read and hides no other.
func TestHeadersEndNoRead(t *testing.T) {
	t.Parallel()
	blocks := map[string]string{
		"no colon": "NATS/1.0\r\nfoo\r\n\r\n", "no name": "NATS/1.0\r\n: x\r\n\r\n", "a space": "NATS/1.0\r\n a: b\r\n\r\n",
		"end of a batch": "NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\nNats-Last-Sequence: 9\r\n\r\nx\r\n\r\n",
		"another's":      "NATS/1.0\r\nNats-Stream: KV_MUSTER_NODES\r\nNats-Subject: $KV.MUSTER_NODES.c.state\r\nNats-Sequence: 2\r\nNats-Time-Stamp: 2026-01-02T03:04:05Z\r\n\r\nx\r\n\r\n",
		"no end":         "NATS/1.0\r\nStatus: 404\r\nX: aa",
	}
	for _, status := range []string{"100", "204", "404", "408", "409", "503"} {
		blocks[status] = fmt.Sprintf("NATS/1.0\r\nStatus: %s\r\n\r\n", status)
		blocks["inline "+status] = fmt.Sprintf("NATS/1.0 %s\r\n\r\n", status)
	}
	for name, block := range blocks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, s := kvtest.New(t)
			stream, of := kvstore.KVStream(s.Names.Nodes), s.Names.NodeState
			if _, err := s.JetStream().Publish(t.Context(), of("a"), []byte("1")); err != nil {
				t.Fatal(err)
			}
			srv.Raw(t, of("b"), block, "")
			if _, err := s.JetStream().Publish(t.Context(), of("c"), []byte("3")); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), kvtest.Deadline)
			defer cancel()
			cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{of("*")}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy}
			var got []string
			for m, err := range kvstore.ScanStream(ctx, s.Store, stream, cfg, false) {
				if err != nil {
					t.Fatal("by a consumer:", err)
				}
				if m.Subject == of("b") && m.Unreadable {
					if _, err := s.Last(ctx, stream, of("b")); !errors.Is(err, kvstore.ErrUnreadable) {
						t.Error("got alone:", err)
					}
				}
				got = append(got, fmt.Sprintf("%s %d %s", m.Subject, m.Sequence, m.Data))
			}
			if want := []string{of("a") + " 1 1", of("b") + " 2 ", of("c") + " 3 3"}; strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("by a consumer: %q", got)
			}
			for _, batch := range []int{1, 2, 256} {
				got = nil
				for m, err := range kvstore.ScanDirect(ctx, s.Store, stream, of("*"), batch) {
					if err != nil {
						t.Fatal("by gets:", err)
					}
					if m.Subject != of("b") {
						got = append(got, fmt.Sprintf("%s %d %s", m.Subject, m.Sequence, m.Data))
					} else if m.Sequence != 2 {
						t.Errorf("by gets: %+v", m)
					}
				}
				if want := []string{of("a") + " 1 1", of("c") + " 3 3"}; strings.Join(got, "\n") != strings.Join(want, "\n") {
					t.Errorf("by gets of %d: %q", batch, got)
				}
			}
			// The server drops a status of the first line.
			if n := s.Refused(); n == 0 && name != "a space" && !strings.HasPrefix(name, "inline") {
				t.Error("none was counted")
			}
		})
	}
}

// A consumer that is deleted during the scan loses and repeats no messages.
func TestAnotherConsumerGoesOn(t *testing.T) {
	t.Parallel()
	_, s := kvtest.New(t)
	stream := kvstore.KVStream(s.Names.Nodes)
	put := func(n int) {
		if _, err := s.JetStream().Publish(t.Context(), s.Names.NodeState(fmt.Sprintf("n%d", n)), nil); err != nil {
			t.Fatal(err)
		}
	}
	put(1)
	ctx, cancel := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer cancel()
	next := uint64(0)
	for m, err := range kvstore.ScanStream(ctx, s.Store, stream, jetstream.OrderedConsumerConfig{}, true) {
		if next++; err != nil || m.Sequence != next {
			t.Fatalf("%d: %+v, %v", next, m, err)
		}
		switch next {
		case 1, 2:
			held, err := s.JetStream().Stream(ctx, stream)
			if err != nil {
				t.Fatal(err)
			}
			for name := range held.ConsumerNames(ctx).Name() {
				if err := s.JetStream().DeleteConsumer(ctx, stream, name); err != nil {
					t.Fatal(err)
				}
			}
			put(int(next) + 1)
		case 3:
			return
		}
	}
}

// TestAConsumerThatDeliversNothingMore: missing messages are not the end if they exist (another client took
// the delivery); removed messages are.
func TestAConsumerThatDeliversNothingMore(t *testing.T) {
	t.Parallel()
	_, s := kvtest.New(t)
	stream := kvstore.KVStream(s.Names.Nodes)
	const count = 600 // more than are asked for at once
	for n := range count {
		if _, err := s.JetStream().PublishAsync(s.Names.NodeState(fmt.Sprintf("n%d", n)), nil); err != nil {
			t.Fatal(err)
		}
	}
	<-s.JetStream().PublishAsyncComplete()
	ctx, cancel := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer cancel()
	held, err := s.JetStream().Stream(ctx, stream)
	if err != nil {
		t.Fatal(err)
	}
	// read reads all, and calls meanwhile with the first message.
	read := func(meanwhile func()) (got int) {
		for _, err := range kvstore.ScanStream(ctx, s.Store, stream, jetstream.OrderedConsumerConfig{}, false) {
			if err != nil {
				t.Fatal(err)
			}
			if got++; got == 1 {
				meanwhile()
			}
		}

		return got
	}
	if got := read(func() {
		for name := range held.ConsumerNames(ctx).Name() {
			c, err := held.Consumer(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			taken, err := c.FetchNoWait(count)
			if err != nil {
				t.Fatal(err)
			}
			for more := true; more; _, more = <-taken.Messages() {
			}
		}
	}); got != count {
		t.Errorf("%d of %d are read where another takes some", got, count)
	}
	if got := read(func() {
		if err := held.Purge(ctx); err != nil {
			t.Fatal(err)
		}
	}); got == 0 || got > count {
		t.Errorf("%d are read of what is removed", got)
	}
}
