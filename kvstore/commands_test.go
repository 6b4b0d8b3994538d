package kvstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// takeCommands runs Commands until the test ends or stop is called.
func takeCommands(t testing.TB, s *kvstore.Store, o kvstore.CommandOptions, handle func(kvstore.Command)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.Commands(ctx, o, func(_ context.Context, c kvstore.Command) error {
			handle(c)
			return nil
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("commands of %s ended with %v", o.Node, err)
		}
	})
	t.Cleanup(stop)

	return stop
}

// inbox collects commands by id.
type inbox struct {
	mu  sync.Mutex
	ids []string
}

func (b *inbox) take(c kvstore.Command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ids = append(b.ids, c.ID)
}

// has waits until exactly these ids came, each once or more, in the order of
// their first time.
func (b *inbox) has(t testing.TB, want ...string) {
	t.Helper()
	eventually(t, "commands", func() (bool, string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		var first []string
		for _, id := range b.ids {
			if !slices.Contains(first, id) {
				first = append(first, id)
			}
		}

		return slices.Equal(first, want), fmt.Sprintf("%v, want %v", b.ids, want)
	})
}

func TestCommandsWaitForANode(t *testing.T) {
	t.Parallel()
	srv, store := newStore(t)
	put := func(family, id string) {
		t.Helper()
		eventually(t, "put command", func() (bool, string) {
			err := store.PutCommand(t.Context(), family, id, []byte(id), time.Hour)
			return err == nil, fmt.Sprint(err)
		})
	}
	put("node.web01", "early1")
	put("node.web01", "early2")
	put("node.web02", "other")
	put("group.web", "early3")
	put("group.all", "early4")
	var got inbox
	o := kvstore.CommandOptions{Node: "web01", Groups: []string{"web"}, Retry: time.Millisecond}
	stop := takeCommands(t, bind(t, srv), o, got.take)
	got.has(t, "early1", "early2", "early3", "early4")
	put("node.web01", "live1")
	got.has(t, "early1", "early2", "early3", "early4", "live1")
	put("group.all", "live2")
	put("node.web02", "other2")
	got.has(t, "early1", "early2", "early3", "early4", "live1", "live2")
	srv.Restart(t)
	put("group.web", "after")
	got.has(t, "early1", "early2", "early3", "early4", "live1", "live2", "after")
	stop()
	m := manager(t, srv)
	eventually(t, "no consumer is left", func() (bool, string) { return noConsumers(t, m, "MUSTER_COMMANDS") })
}

// A command that could not be taken comes again, one that came live too; the
// others do not wait for it.
func TestCommandsThatAreNotTakenComeAgain(t *testing.T) {
	t.Parallel()
	srv, store := newStore(t)
	put := func(id string) {
		t.Helper()
		if err := store.PutCommand(t.Context(), "node.web01", id, []byte(id), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	put("early")
	put("other")
	var got inbox
	refused := map[string]int{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- bind(t, srv).Commands(ctx, kvstore.CommandOptions{Node: "web01", Retry: time.Millisecond}, func(_ context.Context, c kvstore.Command) error {
			if refused[c.ID]++; c.ID != "other" && refused[c.ID] < 3 {
				return errors.New("the disk is full")
			}
			got.take(c)
			return nil
		})
	}()
	got.has(t, "other", "early")
	put("live")
	got.has(t, "other", "early", "live")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A command that was lost on its way is found on the audit.
func TestLostCommandsAreFound(t *testing.T) {
	t.Parallel()
	srv, _ := newStore(t)
	var got inbox
	takeCommands(t, bind(t, srv), kvstore.CommandOptions{Node: "web01", Audit: 5 * time.Millisecond}, got.take)
	// Stored under the node's subject, but published on one that it does not hear.
	update(t, manager(t, srv), "MUSTER_COMMANDS", func(c *api.StreamConfig) {
		c.Subjects = append(c.Subjects, "side.*")
		c.SubjectTransform = &api.SubjectTransformConfig{Source: "side.*", Destination: "muster.command.node.{{wildcard(1)}}"}
	})
	for i, want := range []string{"a", "b"} {
		m := nats.NewMsg("side.web01")
		m.Header.Set(nats.MsgIdHdr, want)
		if _, err := srv.Connect(t).RequestMsg(m, deadline); err != nil {
			t.Fatal(err)
		}
		got.has(t, []string{"a", "b"}[:i+1]...)
	}
}

func TestExpiredCommandsAreGone(t *testing.T) {
	t.Parallel()
	srv, store := newStore(t)
	if err := store.PutCommand(t.Context(), "node.web01", "short", nil, time.Second); err != nil {
		t.Fatal(err)
	}
	if err := store.PutCommand(t.Context(), "node.web01", "long", nil, time.Hour); err != nil {
		t.Fatal(err)
	}
	stream, err := manager(t, srv).LoadStream("MUSTER_COMMANDS")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the short one expires", func() (bool, string) {
		state, err := stream.State()
		return err == nil && state.Msgs == 1, fmt.Sprintf("%+v, %v", state, err)
	})
	var got inbox
	takeCommands(t, bind(t, srv), kvstore.CommandOptions{Node: "web01"}, got.take)
	got.has(t, "long")
}

func TestCommandsAreRefused(t *testing.T) {
	t.Parallel()
	_, store := newStore(t)
	for name, tt := range map[string]struct {
		family, id string
		data       []byte
		ttl        time.Duration
		want       error
	}{
		"family": {family: "web01", id: "a", ttl: time.Second, want: model.ErrInvalidName},
		"id":     {family: "node.web01", ttl: time.Second, want: model.ErrInvalidName},
		"size":   {family: "node.web01", id: "a", data: make([]byte, 2<<20), ttl: time.Second, want: model.ErrTooLarge},
		"ttl":    {family: "node.web01", id: "a", ttl: 25 * time.Hour, want: model.ErrTooLarge},
	} {
		if err := store.PutCommand(t.Context(), tt.family, tt.id, tt.data, tt.ttl); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := store.Commands(t.Context(), kvstore.CommandOptions{Node: "a.b"}, nil); !errors.Is(err, model.ErrInvalidName) {
		t.Errorf("commands = %v", err)
	}
}
