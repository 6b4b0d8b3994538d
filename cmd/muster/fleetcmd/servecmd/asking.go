package servecmd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
)

const (
	// permittedAgain is after what time it is asked again whether requests are permitted that were not, and
	// repeat after what time where the server did not say.
	permittedAgain, repeat = 5 * time.Minute, 10 * time.Second
	// brief is how long a page waits for the server to say.
	brief = 2 * time.Second
)

// asking knows whether requests of this user reach nodes: the server is asked once for each connection,
// and again now and then where they do not.
type asking struct {
	store *kvstore.Store
	// recheck is after what time what was not permitted is asked for again.
	recheck time.Duration

	mu    sync.Mutex
	known map[string]permitted
}

// permitted is whether requests of a verb reach nodes, nil, or why not.
type permitted struct {
	why error
	// until is when it is asked again, zero for never on this connection, which is that of a number of
	// reconnects.
	until time.Time
	on    uint64
}

func newAsking(s *kvstore.Store) *asking {
	return &asking{store: s, recheck: permittedAgain, known: map[string]permitted{}}
}

// can returns why no node can be asked by a verb, nil where they can.
func (a *asking) can(verb string) error {
	if a.store.Places().InUse().IsOwn() {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now, p, on := time.Now(), a.known[verb], a.store.Conn().Stats().Reconnects
	_, known := a.known[verb]
	if known && p.on == on && (p.until.IsZero() || now.Before(p.until)) || a.store.Away() != nil {
		return p.why
	}
	ctx, cancel := context.WithTimeout(context.Background(), brief)
	defer cancel()
	err := requests.New(a.store).CanAsk(ctx, verb)
	p = permitted{why: err, on: on}
	switch {
	case errors.Is(err, requests.ErrNotAsked):
		p.why = fmt.Errorf("nodes cannot be asked to %s anything: %w; pausing and resuming needs no more than --serve --actions", verb, err)
		p.until = now.Add(a.recheck)
	case err != nil:
		p.until = now.Add(repeat)
	}
	a.known[verb] = p

	return p.why
}
