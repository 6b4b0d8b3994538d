package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
)

const (
	// recheckDenied is the time until a denied verb is checked again, recheckUnknown the time until a verb is
	// checked again for which the server did not answer.
	recheckDenied, recheckUnknown = 5 * time.Minute, 10 * time.Second
	// checkTimeout is how long a page waits for the server.
	checkTimeout = 2 * time.Second
)

// permitted caches whether requests of this user reach nodes. It asks the server once per connection and
// verb, and again after a while if they do not. It is safe for concurrent use.
type permitted struct {
	store *kvstore.Store
	// ask returns why requests of a verb cannot reach nodes, or nil.
	ask func(ctx context.Context, verb string) error
	// recheck is recheckDenied, except in tests.
	recheck time.Duration
	checks  singleflight.Group

	mu    sync.Mutex
	known map[string]verdict
}

// verdict is the result of a check.
type verdict struct {
	err error
	// until is the time of the next check; zero means never on this connection. reconnects identifies the
	// connection.
	until      time.Time
	reconnects uint64
}

func newPermitted(s *kvstore.Store) *permitted {
	return &permitted{store: s, ask: requests.New(s).CheckRequests, recheck: recheckDenied, known: map[string]verdict{}}
}

// check returns why requests of a verb cannot reach nodes, or nil.
func (p *permitted) check(verb string) error {
	if p.store.Places().InUse().IsOwn() {
		return nil
	}
	if v, current := p.last(verb); current || p.store.Away() != nil {
		return v.err
	}
	_, err, _ := p.checks.Do(verb, func() (any, error) {
		if v, current := p.last(verb); current {
			return nil, v.err // another goroutine just checked
		}
		v := p.verdict(verb)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.known[verb] = v

		return nil, v.err
	})

	return err
}

// last returns the cached verdict of a verb, and whether it is current.
func (p *permitted) last(verb string) (v verdict, current bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, known := p.known[verb]

	return v, known && v.reconnects == p.store.Conn().Stats().Reconnects && (v.until.IsZero() || time.Now().Before(v.until))
}

// verdict asks the server about a verb.
func (p *permitted) verdict(verb string) verdict {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	v := verdict{reconnects: p.store.Conn().Stats().Reconnects}
	now := time.Now()
	v.err = p.ask(ctx, verb)
	switch {
	case errors.Is(v.err, requests.ErrRequestsNotPermitted):
		v.err = fmt.Errorf("the dashboard cannot send %s requests: %w; pause and resume work with --serve --actions", verb, v.err)
		v.until = now.Add(p.recheck)
	case v.err != nil:
		v.until = now.Add(recheckUnknown)
	}

	return v
}
