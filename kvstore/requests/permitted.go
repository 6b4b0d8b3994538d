package requests

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
)

// ErrRequestsNotPermitted is a user of whom no request of a verb reaches a node at once.
var ErrRequestsNotPermitted = errors.New("only administrators, and users with what `muster fleet permissions NAME --serve --requests run,preview` prints, reach nodes at once")

// errElsewhere is a user that has the permissions of a requester in another account. It wraps
// ErrRequestsNotPermitted.
var errElsewhere = fmt.Errorf("%w: this user has these permissions, but is not in the account REQUESTERS that `muster fleet accounts` prints", ErrRequestsNotPermitted)

// CheckRequests returns why no request of a verb reaches a node at once, nil where it does. It asks the
// server, unless the user is one of the account with the streams, who may do everything. The error
// wraps ErrRequestsNotPermitted, or is of the connection.
func (s Client) CheckRequests(ctx context.Context, verb string) error {
	if err := s.permitted(ctx, verb); err != nil || !s.isJoined() {
		return err
	}

	return s.check(ctx, s.store.Names().RequestsCheck(), errElsewhere)
}

// isJoined reports whether the user is one of an account that is joined with that of the fleet.
func (s Client) isJoined() bool {
	places := s.store.Places()

	return places.IsFound() && !places.InUse().IsOwn()
}

// permitted is CheckRequests of a user whose account is taken for the right one.
func (s Client) permitted(ctx context.Context, verb string) error {
	switch {
	case !s.isJoined():
		return nil
	case s.store.User() == "":
		return ErrRequestsNotPermitted
	default:
		return s.check(ctx, s.store.Names().VerbCheck(verb), nil)
	}
}

// check returns ErrRequestsNotPermitted where a subject is not permitted, and nobody where nobody listens there.
func (s Client) check(ctx context.Context, subject string, nobody error) error {
	ctx, cancel := context.WithTimeout(ctx, kvstore.RequestTimeout)
	defer cancel()
	permitted, done := s.store.Denials().Permitted(ctx, kvstore.To(subject))
	_, err := s.store.Conn().RequestWithContext(permitted, subject, nil)
	switch err = done(err); {
	case errors.Is(err, kvstore.ErrNotPermitted):
		return ErrRequestsNotPermitted
	case errors.Is(err, nats.ErrNoResponders):
		return nobody
	case err != nil:
		return fmt.Errorf("ask whether requests are permitted: %w", err)
	default:
		return nil
	}
}
