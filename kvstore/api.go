package kvstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore/denial"
)

// API is the prefix of the subjects by which JetStream is asked.
type API string

const (
	// OwnAPI is that of an account with JetStream.
	OwnAPI API = "$JS.API"
	// JoinedAPI is that of an account that is joined with one with JetStream, as
	// muster fleet accounts joins NODES with FLEET.
	JoinedAPI API = "fleet.API"
)

// IsOwn reports whether it is that of an account with streams, where the server
// publishes its answers wherever a user asks it to.
func (a API) IsOwn() bool { return strings.HasPrefix(string(a), "$JS.") }

// Subject returns the subject of an operation on something.
func (a API) Subject(tokens ...string) string {
	return strings.Join(append([]string{string(a)}, tokens...), ".")
}

// StreamList is the subject that lists streams.
func (a API) StreamList() string { return a.Subject("STREAM.LIST") }

// StreamInfo is the subject that asks for the configuration, the state and the
// subjects of a stream.
func (a API) StreamInfo(stream string) string { return a.Subject("STREAM.INFO", stream) }

// DirectGet is the subject that asks for the newest message of a subject, or, for
// none, for any message by a request body.
func (a API) DirectGet(stream, subject string) string {
	if subject == "" {
		return a.Subject("DIRECT.GET", stream)
	}

	return a.Subject("DIRECT.GET", stream, subject)
}

// Next is the subject that asks a consumer of a stream for messages.
func (a API) Next(stream, consumer string) string {
	return a.Subject("CONSUMER.MSG.NEXT", stream, consumer)
}

// apis are the places where JetStream may be asked.
type apis struct {
	mu sync.Mutex
	// candidates has the one in use first. Where chosen is set it is the only one.
	candidates []API
	chosen     API
	clients    map[API]jetstream.JetStream // never changed
	// answered is set once the one in use has answered.
	answered bool
	// located is closed once one has answered, on is the connection of the last answer:
	// on another one the user may be of another account.
	located chan struct{}
	on      uint64
	epoch   func() uint64
}

// newAPIs returns the places for a connection: only the chosen one, if any.
// Whoever has an inbox prefix of its own, as nodes have, probably has no account of
// its own.
func newAPIs(nc *nats.Conn, chosen API) (*apis, error) {
	a := &apis{candidates: []API{OwnAPI, JoinedAPI}, clients: map[API]jetstream.JetStream{}, chosen: chosen, located: make(chan struct{}), epoch: func() uint64 { return nc.Stats().Reconnects }}
	switch {
	case chosen != "":
		a.candidates = []API{chosen}
	case !strings.HasPrefix(nc.NewInbox(), nats.InboxPrefix):
		slices.Reverse(a.candidates)
	}
	for _, api := range a.candidates {
		js, err := jetstream.NewWithAPIPrefix(nc, string(api), jetstream.WithDefaultTimeout(RequestTimeout))
		if err != nil {
			return nil, fmt.Errorf("jetstream: %w", err)
		}
		a.clients[api] = js
	}

	return a, nil
}

// all returns the places, the one in use first.
func (a *apis) all() []API {
	a.mu.Lock()
	defer a.mu.Unlock()

	return slices.Clone(a.candidates)
}

// isFound reports whether it is known which place is in use. Its caller has the lock.
func (a *apis) isFound() bool { return a.chosen != "" || a.answered }

// use notes the place that answered.
func (a *apis) use(api API) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.answered {
		close(a.located)
	}
	a.answered, a.on = true, a.epoch()
	a.candidates = append([]API{api}, slices.DeleteFunc(slices.Clone(a.candidates), func(other API) bool { return other == api })...)
}

// ErrAPIPrefix is a chosen prefix of the JetStream API at which nothing has answered.
var ErrAPIPrefix = errors.New("wrong prefix of the JetStream API")

// mistaken returns an ErrAPIPrefix for a subject below a chosen prefix that has never
// answered, else nil.
func (a *apis) mistaken(subject string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.chosen == "" || a.answered || !strings.HasPrefix(subject, a.chosen.Subject("")) {
		return nil
	}

	return denial.Unusable{Err: fmt.Errorf("%w, %s: leave it out of the configuration (nats.api_prefix, --js-api-prefix, the context), %s and %s are found; any other must be joined with the fleet's account, and permitted", ErrAPIPrefix, a.chosen, OwnAPI, JoinedAPI)}
}

// isExpected reports whether the denial of a request means nothing: it only shows
// whether JetStream is asked there, or was made for the account of an earlier connection.
func (a *apis) isExpected(subject string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.candidates, func(api API) bool { return strings.HasPrefix(subject, api.Subject("")) })
	switch {
	case i < 0 || a.chosen != "":
		return false
	case i > 0:
		return true
	case a.isFound():
		return a.on != a.epoch()
	default:
		return subject == a.candidates[0].StreamList()
	}
}

// API returns where JetStream is asked; found is false while that is neither chosen nor
// shown by an answer.
func (s *Store) API() (api API, found bool) {
	s.apis.mu.Lock()
	defer s.apis.mu.Unlock()

	return s.apis.candidates[0], s.apis.isFound()
}

// Located is closed once JetStream has answered at API.
func (s *Store) Located() <-chan struct{} { return s.apis.located }

// api is API without the proof.
func (s *Store) api() API {
	api, _ := s.API()

	return api
}

// JetStream returns JetStream on the connection.
func (s *Store) JetStream() jetstream.JetStream { return s.apis.clients[s.api()] }

// isElsewhere reports whether an error leaves open that JetStream is in another
// place: an outage does not.
func isElsewhere(err error) bool {
	return errors.Is(err, ErrNoJetStream) || errors.Is(err, ErrNotPermitted) || errors.Is(err, nats.ErrNoResponders)
}
