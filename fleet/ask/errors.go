package ask

import (
	"errors"
	"fmt"
)

// Refusal is an action that is not done; it never will be by trying again.
type Refusal struct{ Why string }

// Error returns why, and what to do.
func (r *Refusal) Error() string { return r.Why }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// The errors of actions beside Refusal and those of target expressions.
var (
	// ErrOff is that nobody may act.
	ErrOff = errors.New("actions are off: start muster fleet serve with --actions, and with --tokens or OpenID Connect")
	// ErrBusy is that too much goes on already.
	ErrBusy = errors.New("too many actions at once")
	// ErrAway is that NATS cannot be reached, so that nothing begins.
	ErrAway = errors.New("NATS cannot be reached")
	// ErrUnknown is an action that this server does not know.
	ErrUnknown = errors.New("no such action is known to this server: it was started since, or another one did it")
	// ErrNobody is a target in which no node is.
	ErrNobody = errors.New("no known node matches")
	// ErrAll is a target of all of a fleet that is not small, where that was not confirmed.
	ErrAll = errors.New("this is for all nodes: confirm it")
	// ErrOthers is a target that has other nodes than whoever acts was shown.
	ErrOthers = errors.New("other nodes match now than when they were shown")
)
