package jsapi

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore/denial"
)

// ErrNoJetStream is an account without JetStream.
var ErrNoJetStream = errors.New("JetStream is not enabled for this account")

// ErrPrefix is a chosen prefix of the JetStream API at which nothing has answered.
var ErrPrefix = errors.New("wrong prefix of the JetStream API")

// ErrNotJoined is an account that is not joined with the fleet's, of a user who may ask
// where one that is joined does.
var ErrNotJoined = fmt.Errorf("nothing answers at %s, where this user may ask: if a reload of nats-server has added the account, reload it a second time, only that connects it with the fleet's. Otherwise the user must be in the account NODES, OPERATORS or REQUESTERS, with the imports that `muster fleet accounts` prints; a node needs a user there or, in the fleet's own account, what `muster fleet permissions NODE --one-account` prints", Joined)

// Places are those where JetStream may be asked on a connection. Methods may be called
// from several goroutines.
type Places struct {
	mu sync.Mutex
	// candidates has the one in use first. Where chosen is set it is the only one.
	candidates []Prefix
	chosen     Prefix
	clients    map[Prefix]jetstream.JetStream // never changed
	// answered is set once the one in use has answered.
	answered bool
	// located is closed once one has answered, on is the connection of the last answer:
	// on another one the user may be of another account.
	located chan struct{}
	on      uint64
	epoch   func() uint64
}

// New returns the places for a connection: only the chosen one, if any. Requests of
// its clients have a timeout. Whoever has an inbox prefix of its own, as nodes have,
// probably has no account of its own.
func New(nc *nats.Conn, chosen Prefix, timeout time.Duration) (*Places, error) {
	p := &Places{candidates: []Prefix{Own, Joined}, clients: map[Prefix]jetstream.JetStream{}, chosen: chosen, located: make(chan struct{}), epoch: func() uint64 { return nc.Stats().Reconnects }}
	switch {
	case chosen != "":
		p.candidates = []Prefix{chosen}
	case !strings.HasPrefix(nc.NewInbox(), nats.InboxPrefix):
		slices.Reverse(p.candidates)
	}
	for _, prefix := range p.candidates {
		js, err := jetstream.NewWithAPIPrefix(nc, string(prefix), jetstream.WithDefaultTimeout(timeout))
		if err != nil {
			return nil, fmt.Errorf("jetstream: %w", err)
		}
		p.clients[prefix] = js
	}

	return p, nil
}

// InUse returns where JetStream is asked.
func (p *Places) InUse() Prefix {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.candidates[0]
}

// IsFound reports whether the place in use is chosen, or has answered.
func (p *Places) IsFound() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.isFound()
}

// JetStream returns the client of the place in use.
func (p *Places) JetStream() jetstream.JetStream { return p.clients[p.InUse()] }

// Located is closed once JetStream has answered in a place.
func (p *Places) Located() <-chan struct{} { return p.located }

// Find asks in each place, until one answers: that is the place in use from then on. It
// returns the error of an outage at once, else what tells most about why none answered; the
// error wraps ErrNotJoined.
func (p *Places) Find(ask func(Prefix) error) error {
	var failed error
	noResponders := false
	for _, prefix := range p.all() {
		err := ask(prefix)
		if err == nil {
			p.use(prefix)
			return nil
		}
		if !isElsewhere(err) {
			return err
		}
		noResponders = noResponders || prefix == Joined && errors.Is(err, nats.ErrNoResponders)
		// That nothing answers tells less than any other error.
		if failed == nil || errors.Is(failed, nats.ErrNoResponders) {
			failed = err
		}
	}
	if noResponders && errors.Is(failed, denial.ErrNotPermitted) && !p.isJoined() {
		return denial.Unusable{Err: ErrNotJoined}
	}

	return failed
}

// isJoined reports whether the last answer came over accounts that are joined.
func (p *Places) isJoined() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.answered && p.candidates[0] == Joined
}

// isElsewhere reports whether an error leaves open that JetStream is in another
// place: an outage does not.
func isElsewhere(err error) bool {
	return errors.Is(err, ErrNoJetStream) || errors.Is(err, denial.ErrNotPermitted) || errors.Is(err, nats.ErrNoResponders)
}

// all returns the places, the one in use first.
func (p *Places) all() []Prefix {
	p.mu.Lock()
	defer p.mu.Unlock()

	return slices.Clone(p.candidates)
}

// isFound is IsFound for a caller that has the lock.
func (p *Places) isFound() bool { return p.chosen != "" || p.answered }

// use notes the place that answered.
func (p *Places) use(prefix Prefix) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.answered {
		close(p.located)
	}
	p.answered, p.on = true, p.epoch()
	p.candidates = append([]Prefix{prefix}, slices.DeleteFunc(slices.Clone(p.candidates), func(other Prefix) bool { return other == prefix })...)
}

// Mistaken returns an ErrPrefix for a subject below a chosen prefix that has never
// answered, else nil.
func (p *Places) Mistaken(subject string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.chosen == "" || p.answered || !strings.HasPrefix(subject, p.chosen.Subject("")) {
		return nil
	}

	return denial.Unusable{Err: fmt.Errorf("%w, %s: leave it out of the configuration (nats.api_prefix, --js-api-prefix, the context), %s and %s are found; any other must be joined with the fleet's account, and permitted", ErrPrefix, p.chosen, Own, Joined)}
}

// IsExpected reports whether the denial of a request means nothing: it only shows
// whether JetStream is asked there, or was made for the account of an earlier connection.
func (p *Places) IsExpected(subject string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.candidates, func(prefix Prefix) bool { return strings.HasPrefix(subject, prefix.Subject("")) })
	switch {
	case i < 0 || p.chosen != "":
		return false
	case i > 0:
		return true
	case p.isFound():
		return p.on != p.epoch()
	default:
		return subject == p.candidates[0].StreamList()
	}
}
