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
	// recheckDenied is after what time what was not permitted is checked again, recheckUnknown after what
	// time where the server did not answer.
	recheckDenied, recheckUnknown = 5 * time.Minute, 10 * time.Second
	// checkTimeout is how long a page waits for the server.
	checkTimeout = 2 * time.Second
)

// permitted knows whether requests of this user reach nodes: the server is asked once for each connection
// and verb, and again now and then where they do not. Its methods may be called from several goroutines.
type permitted struct {
	store *kvstore.Store
	// ask asks the server why requests of a verb reach no node, nil where they do.
	ask func(ctx context.Context, verb string) error
	// recheck is recheckDenied, but in tests.
	recheck time.Duration
	checks  singleflight.Group

	mu    sync.Mutex
	known map[string]verdict
}

// verdict is whether requests of a verb reach nodes, nil, or why not.
type verdict struct {
	err error
	// until is when it is checked again, zero for never on this connection, which is that of a number of
	// reconnects.
	until      time.Time
	reconnects uint64
}

func newPermitted(s *kvstore.Store) *permitted {
	return &permitted{store: s, ask: requests.New(s).CheckRequests, recheck: recheckDenied, known: map[string]verdict{}}
}

// check returns why requests of a verb reach no node, nil where they do.
func (p *permitted) check(verb string) error {
	if p.store.Places().InUse().IsOwn() {
		return nil
	}
	if v, current := p.last(verb); current || p.store.Away() != nil {
		return v.err
	}
	_, err, _ := p.checks.Do(verb, func() (any, error) {
		if v, current := p.last(verb); current {
			return nil, v.err // another check has ended meanwhile
		}
		v := p.verdict(verb)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.known[verb] = v

		return nil, v.err
	})

	return err
}

// last returns the last verdict of a verb, and whether it is current.
func (p *permitted) last(verb string) (v verdict, current bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, known := p.known[verb]

	return v, known && v.reconnects == p.store.Conn().Stats().Reconnects && (v.until.IsZero() || time.Now().Before(v.until))
}

// verdict returns what the server says of a verb now.
func (p *permitted) verdict(verb string) verdict {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	v := verdict{reconnects: p.store.Conn().Stats().Reconnects}
	now := time.Now()
	v.err = p.ask(ctx, verb)
	switch {
	case errors.Is(v.err, requests.ErrRequestsNotPermitted):
		v.err = fmt.Errorf("nodes cannot be asked to %s anything: %w; pausing and resuming needs no more than --serve --actions", verb, v.err)
		v.until = now.Add(p.recheck)
	case v.err != nil:
		v.until = now.Add(recheckUnknown)
	}

	return v
}
