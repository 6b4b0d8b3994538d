package kvtest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/kvstore/requests"
)

// TakeCommands runs Commands until the test ends or stop is called.
func TakeCommands(t testing.TB, s *Store, o requests.CommandOptions, handle func(requests.Command)) (stop func()) {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.Commands(ctx, o, func(_ context.Context, c requests.Command) error {
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

// Inbox collects commands by id.
type Inbox struct {
	mu  sync.Mutex
	ids []string
}

// Take notes the id of a command.
func (b *Inbox) Take(c requests.Command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ids = append(b.ids, c.ID)
}

// Has waits until exactly these ids came, each once or more, in the order of
// their first time.
func (b *Inbox) Has(t testing.TB, want ...string) {
	t.Helper()
	Eventually(t, "commands", func() (bool, string) {
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

// Serve runs the service of a node until the test ends or stop is called.
func Serve(t testing.TB, s *Store, o requests.ServeOptions) (stop func()) {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Ping == nil {
		o.Ping = func(context.Context, []byte) (any, error) { return o.Node, nil }
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, o) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("service of %s ended with %v", o.Node, err)
		}
	})
	t.Cleanup(stop)

	return stop
}

// Answers asks until as many nodes have answered, and returns their answers.
func Answers(t testing.TB, s *Store, subject string, request []byte, want int) map[string]string {
	t.Helper()
	got := map[string]string{}
	Eventually(t, fmt.Sprintf("%d answers to %s", want, subject), func() (bool, string) {
		clear(got)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for r, err := range Ask(ctx, s, subject, request) {
			if err != nil {
				return false, err.Error()
			}
			if got[r.Node] = string(r.Data) + r.Problem; len(got) == want {
				return true, ""
			}
		}

		return false, fmt.Sprint(got)
	})

	return got
}
