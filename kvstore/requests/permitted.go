package requests

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
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

	return s.checkAccount(ctx, s.store.Names().RequestsCheck())
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
		return s.checkVerb(ctx, s.store.Names().VerbCheck(verb))
	}
}

// denialDelay is the time that checkVerb waits for an answer, and for a denial after the server answered a ping.
const denialDelay = time.Second

// checkVerb returns ErrRequestsNotPermitted if the user may not publish to a subject. Nothing listens there, so the server
// reports "no responders" to permitted users. While a client subscribes to all subjects there is no such report; then the
// subject is permitted unless a denial arrives.
func (s Client) checkVerb(ctx context.Context, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, kvstore.RequestTimeout)
	defer cancel()
	permitted, done := s.store.Denials().Permitted(ctx, kvstore.To(subject))
	wait, stop := context.WithTimeout(permitted, denialDelay)
	defer stop()
	_, err := s.store.Conn().RequestWithContext(wait, subject, nil)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		err = nil
	case errors.Is(err, context.DeadlineExceeded) && permitted.Err() == nil:
		if err = s.store.Conn().FlushWithContext(permitted); err == nil {
			err = kvstore.Pause(permitted, denialDelay)
		}
	}

	return checked(done(err))
}

// checkAccount returns errElsewhere if nothing listens on a subject, and ErrRequestsNotPermitted if the user may not publish
// to it.
func (s Client) checkAccount(ctx context.Context, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, kvstore.RequestTimeout)
	defer cancel()
	permitted, done := s.store.Denials().Permitted(ctx, kvstore.To(subject))
	_, err := s.store.Conn().RequestWithContext(permitted, subject, nil)
	if err = done(err); errors.Is(err, nats.ErrNoResponders) {
		return errElsewhere
	}

	return checked(err)
}

// checked returns the error of a check: ErrRequestsNotPermitted for a denial.
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
