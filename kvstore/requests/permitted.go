package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// ErrRequestsNotPermitted reports that the user cannot send requests of a verb directly to nodes.
var ErrRequestsNotPermitted = errors.New("only administrators, and users with what `muster fleet permissions NAME --serve --requests run,preview` prints, reach nodes at once")

// errElsewhere reports that the user has the permissions of a requester, but in the wrong account. It
// wraps ErrRequestsNotPermitted.
var errElsewhere = fmt.Errorf("%w: this user has these permissions, but is not in the account REQUESTERS that `muster fleet accounts` prints", ErrRequestsNotPermitted)

// CheckRequests returns an error if the user cannot send requests of a verb directly to nodes. It asks
// the server, except for users of the account with the streams, who may do everything. The error wraps
// ErrRequestsNotPermitted or comes from the connection.
func (s Client) CheckRequests(ctx context.Context, verb string) error {
	if err := s.permitted(ctx, verb); err != nil || !s.isJoined() {
		return err
	}

	return s.checkAccount(ctx, s.store.Names.RequestsCheck())
}

func (s Client) isJoined() bool {
	places := s.store.API

	return places.IsFound() && !places.InUse().IsOwn()
}

// permitted checks the permissions of the user like CheckRequests, but not the account.
func (s Client) permitted(ctx context.Context, verb string) error {
	switch {
	case !s.isJoined():
		return nil
	case s.store.User == "":
		return ErrRequestsNotPermitted
	default:
		return s.checkVerb(ctx, s.store.Names.VerbCheck(verb))
	}
}

// denialDelay is the time that checkVerb waits for an answer, and for a denial after the server
// answered a ping.
const denialDelay = time.Second

// checkVerb returns ErrRequestsNotPermitted if the user may not publish to a subject. Nothing listens there, so the server
// reports "no responders" to permitted users. While a client subscribes to all subjects there is no such report; then the
// subject is permitted unless a denial arrives.
func (s Client) checkVerb(ctx context.Context, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, kvstore.RequestTimeout)
	defer cancel()
	permitted, done := s.store.Denials.Permitted(ctx, kvstore.To(subject))
	wait, stop := context.WithTimeout(permitted, denialDelay)
	defer stop()
	_, err := s.store.Conn.RequestWithContext(wait, subject, nil)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		err = nil
	case errors.Is(err, context.DeadlineExceeded) && permitted.Err() == nil:
		if err = s.store.Conn.FlushWithContext(permitted); err == nil {
			err = kvstore.Pause(permitted, denialDelay)
		}
	}

	return checked(done(err))
}

// checkAccount returns errElsewhere if no service listens on a subject, and ErrRequestsNotPermitted if
// the user may not publish to it.
func (s Client) checkAccount(ctx context.Context, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, kvstore.RequestTimeout)
	defer cancel()
	permitted, done := s.store.Denials.Permitted(ctx, kvstore.To(subject))
	_, err := s.store.Conn.RequestWithContext(permitted, subject, nil)
	if err = done(err); errors.Is(err, nats.ErrNoResponders) {
		return errElsewhere
	}

	return checked(err)
}

func checked(err error) error {
	switch {
	case errors.Is(err, model.ErrNotPermitted):
		return ErrRequestsNotPermitted
	case err != nil:
		return fmt.Errorf("ask whether requests are permitted: %w", err)
	default:
		return nil
	}
}

const unstoredTimeout = time.Second

// SilentServers returns the NATS servers that do not answer the others, with the time of their last answer.
func (s Client) SilentServers(ctx context.Context) (map[string]time.Time, error) {
	return s.store.SilentServers(ctx)
}

// LastStored returns when the bucket of nodes and the stream of reports stored their last messages.
func (s Client) LastStored(ctx context.Context) (states, reports model.LastStored, err error) {
	names := s.store.Names
	last, err := s.store.LastStored(ctx, kvstore.KVStream(names.Nodes), names.Reports)
	if err != nil {
		return states, reports, err
	}

	return last[0], last[1], nil
}

// IsAdministrator reports whether the user can send requests of all kinds.
func (s Client) IsAdministrator() bool { return s.store.API.InUse().IsOwn() }

// UnstoredReason returns why the state of a node is not stored, as the node answers. It is empty if the node does not answer
// or its state is stored.
func (s Client) UnstoredReason(ctx context.Context, node string) string {
	ctx, cancel := context.WithTimeout(ctx, unstoredTimeout)
	defer cancel()
	for reply, err := range s.Ask(ctx, []Request{{Subject: s.store.Names.Request(kvstore.VerbPing, model.NodeFamily(node))}}) {
		if err != nil || reply.Node != node {
			continue
		}
		var state model.NodeState
		_ = json.Unmarshal(reply.Data, &state) // an older agent answers in another format

		return state.Unstored[model.UnstoredState]
	}

	return ""
}

const (
	// recheckUnknown is the time until a verb is checked again for which the server did not answer.
	recheckUnknown = 10 * time.Second
	// checkTimeout is the maximum wait for the server.
	checkTimeout = 2 * time.Second
)

// Permissions caches whether requests of this user reach nodes. It asks the server once per connection and verb, and
// again after a while if they do not. It is safe for concurrent use. Create it with NewPermissions.
type Permissions struct {
	// Ask returns why requests of a verb cannot reach nodes, or nil. Recheck is the time until a denied verb is checked
	// again. Tests change both.
	Ask     func(ctx context.Context, verb string) error
	Recheck time.Duration

	store *kvstore.Store
	// verdicts holds a *permission for each verb.
	verdicts sync.Map
}

// permission is the last answer of the server about a verb.
type permission struct {
	mu  sync.Mutex
	err error
	// isKnown is false before the first answer. until is the time of the next check; zero means never on this
	// connection. reconnects identifies the connection.
	isKnown    bool
	until      time.Time
	reconnects uint64
}

// NewPermissions returns the permissions of the user of a connection.
func NewPermissions(s *kvstore.Store) *Permissions {
	return &Permissions{store: s, Ask: New(s).CheckRequests, Recheck: 5 * time.Minute}
}

// Check returns why requests of a verb cannot reach nodes, or nil. Without a connection it returns the last answer.
func (p *Permissions) Check(verb string) error {
	if p.store.API.InUse().IsOwn() {
		return nil
	}
	found, _ := p.verdicts.LoadOrStore(verb, &permission{})
	v := found.(*permission)
	v.mu.Lock()
	defer v.mu.Unlock()
	now, reconnects := time.Now(), p.store.Conn.Stats().Reconnects
	isCurrent := v.isKnown && v.reconnects == reconnects && (v.until.IsZero() || now.Before(v.until))
	if isCurrent || p.store.Away() != nil {
		return v.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	v.err, v.isKnown, v.until, v.reconnects = p.Ask(ctx, verb), true, time.Time{}, reconnects
	switch {
	case errors.Is(v.err, ErrRequestsNotPermitted):
		v.until = now.Add(p.Recheck)
	case v.err != nil:
		v.until = now.Add(recheckUnknown)
	}

	return v.err
}
