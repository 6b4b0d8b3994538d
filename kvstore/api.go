package kvstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// APIPrefix is the subject prefix of the JetStream API.
type APIPrefix string

const (
	// OwnAPI is the prefix in an account with JetStream.
	OwnAPI APIPrefix = "$JS.API"
	// JoinedAPI is the prefix in an account that imports from the fleet's account, such as NODES.
	JoinedAPI APIPrefix = "fleet.API"
)

// IsOwn reports whether the account has the streams. There the server publishes answers to any subject
// that a user chooses.
func (p APIPrefix) IsOwn() bool { return strings.HasPrefix(string(p), "$JS.") }

// Subject returns the subject of an operation.
func (p APIPrefix) Subject(tokens ...string) string {
	return strings.Join(append([]string{string(p)}, tokens...), ".")
}

// StreamList returns the subject that lists streams.
func (p APIPrefix) StreamList() string { return p.Subject("STREAM.LIST") }

// StreamInfo returns the subject that requests the configuration, the state and the subjects of a
// stream.
func (p APIPrefix) StreamInfo(stream string) string { return p.Subject("STREAM.INFO", stream) }

// DirectGet returns the subject that reads the newest message of a subject. With an empty subject, the
// request body selects the messages.
func (p APIPrefix) DirectGet(stream, subject string) string {
	if subject == "" {
		return p.Subject("DIRECT.GET", stream)
	}

	return p.Subject("DIRECT.GET", stream, subject)
}

// Next returns the subject that requests messages of a consumer.
func (p APIPrefix) Next(stream, consumer string) string {
	return p.Subject("CONSUMER.MSG.NEXT", stream, consumer)
}

// About returns a function that reports whether a subject is a JetStream request about a stream.
func (p APIPrefix) About(stream string) func(string) bool {
	return func(subject string) bool {
		return strings.HasPrefix(subject, p.Subject("")) && strings.Contains(subject+".", "."+stream+".")
	}
}

// ErrNoJetStream reports an account without JetStream.
var ErrNoJetStream = errors.New("JetStream is not enabled for this account")

// errNotJetStream reports an answer that is not from JetStream.
var errNotJetStream = errors.New("the responder is not JetStream")

// apiSilence is the time without an answer after which findAPI also tries the next prefix.
const apiSilence = time.Second

// ErrPrefix reports that nothing answers at the configured prefix of the JetStream API.
var ErrPrefix = errors.New("wrong prefix of the JetStream API")

// ErrNotJoined reports that the account of the user does not import from the fleet's account.
var ErrNotJoined = fmt.Errorf("nothing answers at %s, where this user may ask: if a reload of nats-server has added the account, reload it a second time, only that connects it with the fleet's. Otherwise the user must be in the account NODES, OPERATORS or REQUESTERS, with the imports that `muster fleet accounts` prints; a node needs a user there or, in the fleet's own account, what `muster fleet permissions NODE --one-account` prints", JoinedAPI)

// APIFinder finds the prefix of the JetStream API on a connection. Its methods are safe for concurrent
// use.
type APIFinder struct {
	mu sync.Mutex
	// candidates starts with the prefix in use. If a prefix was configured, it is the only candidate.
	candidates []APIPrefix
	chosen     APIPrefix
	clients    map[APIPrefix]jetstream.JetStream // never changes
	// answered reports whether the prefix in use has answered.
	answered bool
	// located is closed at the first answer. on is the number of reconnects at the last answer,
	// because after a reconnect the user may be in another account.
	located chan struct{}
	on      uint64
	epoch   func() uint64
}

// newAPIFinder returns the finder for a connection. chosen is the configured prefix, or "". timeout
// limits each request. A user with a custom inbox prefix, such as a node, is probably in a joined
// account, so that prefix is tried first.
func newAPIFinder(nc *nats.Conn, chosen APIPrefix, timeout time.Duration) (*APIFinder, error) {
	p := &APIFinder{candidates: []APIPrefix{OwnAPI, JoinedAPI}, clients: map[APIPrefix]jetstream.JetStream{}, chosen: chosen, located: make(chan struct{}), epoch: func() uint64 { return nc.Stats().Reconnects }}
	switch {
	case chosen != "":
		p.candidates = []APIPrefix{chosen}
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

// InUse returns the prefix in use.
func (p *APIFinder) InUse() APIPrefix {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.candidates[0]
}

// IsFound reports whether the prefix in use was configured or has answered.
func (p *APIFinder) IsFound() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.isFound()
}

// JetStream returns the client for the prefix in use.
func (p *APIFinder) JetStream() jetstream.JetStream { return p.clients[p.InUse()] }

// Located is closed when JetStream has answered at a prefix.
func (p *APIFinder) Located() <-chan struct{} { return p.located }

type apiProbe[T any] struct {
	prefix APIPrefix
	answer T
	err    error
}

// findAPI asks for an answer at the API prefixes and returns the first valid one, whose prefix is then
// in use. It starts with the prefix in use and continues with the next one after a failure. If no
// prefix has answered on this connection, it also tries the next one after a second of silence.
// Silence proves nothing, because a client that subscribes to all subjects swallows requests. findAPI
// returns the error of a lost connection at once. Otherwise the error lists the prefixes. It wraps
// ErrNotJoined if the account does not import from the fleet.
func findAPI[T any](ctx context.Context, p *APIFinder, ask func(context.Context, APIPrefix) (T, error)) (answer T, err error) {
	var probing sync.WaitGroup
	defer probing.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	waiting := p.all()
	probes := make(chan apiProbe[T], len(waiting))
	asked := 0
	var next <-chan time.Time
	start := func() {
		prefix := waiting[0]
		waiting = waiting[1:]
		asked++
		probing.Go(func() {
			answer, err := ask(ctx, prefix)
			probes <- apiProbe[T]{prefix, answer, err}
		})
		if next = nil; len(waiting) > 0 && !p.isCurrent() {
			next = time.After(apiSilence)
		}
	}
	start()
	var failed []apiFailure
	for asked > 0 {
		select {
		case <-next:
			start()
		case done := <-probes:
			asked--
			switch {
			case done.err == nil:
				p.use(done.prefix)
				return done.answer, nil
			case !isElsewhere(done.err) || context.Cause(ctx) != nil:
				return answer, done.err
			}
			failed = append(failed, apiFailure{done.prefix, done.err})
			if len(waiting) > 0 {
				start()
			}
		}
	}

	return answer, p.explain(failed)
}

type apiFailure struct {
	prefix APIPrefix
	err    error
}

func (p *APIFinder) explain(failed []apiFailure) error {
	// Silence may be an outage, so it ranks first. "No responders" has the least information.
	rank := func(f apiFailure) int {
		switch {
		case isSilence(f.err):
			return 0
		case !errors.Is(f.err, nats.ErrNoResponders):
			return 1
		default:
			return 2
		}
	}
	slices.SortStableFunc(failed, func(a, b apiFailure) int { return rank(a) - rank(b) })
	main := failed[0].err
	notJoined := slices.ContainsFunc(failed, func(f apiFailure) bool { return f.prefix == JoinedAPI && errors.Is(f.err, nats.ErrNoResponders) })
	switch {
	case notJoined && errors.Is(main, model.ErrNotPermitted) && !p.isJoined():
		return Unusable{Err: ErrNotJoined}
	case !isSilence(main):
		return main
	}
	tried := make([]string, len(failed))
	for i, f := range failed {
		tried[i] = fmt.Sprintf("%s: %s", f.prefix, failureReason(f.err))
	}

	return fmt.Errorf("JetStream does not answer (tried %s): %w", strings.Join(tried, ", "), main)
}

func failureReason(err error) string {
	switch {
	case isSilence(err):
		return "no answer in time"
	case errors.Is(err, nats.ErrNoResponders):
		return "nothing listens"
	case errors.Is(err, model.ErrNotPermitted):
		return "not permitted"
	default:
		return err.Error()
	}
}

// isJoined reports whether the last answer used the prefix of a joined account.
func (p *APIFinder) isJoined() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.answered && p.candidates[0] == JoinedAPI
}

// isElsewhere reports whether another prefix may work after an error. After a lost connection none
// works.
func isElsewhere(err error) bool {
	return errors.Is(err, ErrNoJetStream) || errors.Is(err, errNotJetStream) || errors.Is(err, model.ErrNotPermitted) || errors.Is(err, nats.ErrNoResponders) || isSilence(err)
}

func isSilence(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
}

// all returns the candidates, the prefix in use first.
func (p *APIFinder) all() []APIPrefix {
	p.mu.Lock()
	defer p.mu.Unlock()

	return slices.Clone(p.candidates)
}

// isFound is IsFound for a caller that holds the lock.
func (p *APIFinder) isFound() bool { return p.chosen != "" || p.answered }

// isCurrent reports whether the prefix in use was configured, or has answered on this connection.
func (p *APIFinder) isCurrent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.chosen != "" || p.answered && p.on == p.epoch()
}

// use records the prefix that answered.
func (p *APIFinder) use(prefix APIPrefix) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.answered {
		close(p.located)
	}
	p.answered, p.on = true, p.epoch()
	p.candidates = append([]APIPrefix{prefix}, slices.DeleteFunc(slices.Clone(p.candidates), func(other APIPrefix) bool { return other == prefix })...)
}

// Mistaken returns ErrPrefix for a subject below a configured prefix that has never answered, or nil.
func (p *APIFinder) Mistaken(subject string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.chosen == "" || p.answered || !strings.HasPrefix(subject, p.chosen.Subject("")) {
		return nil
	}

	return Unusable{Err: fmt.Errorf("%w, %s: leave it out of the configuration (nats.api_prefix, --js-api-prefix, the context), %s and %s are found; any other must be joined with the fleet's account, and permitted", ErrPrefix, p.chosen, OwnAPI, JoinedAPI)}
}

// IsExpected reports whether the denial of a request has no meaning: the request only tried a prefix,
// or was sent to the account of an earlier connection.
func (p *APIFinder) IsExpected(subject string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.candidates, func(prefix APIPrefix) bool { return strings.HasPrefix(subject, prefix.Subject("")) })
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
