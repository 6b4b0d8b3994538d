package ask

import (
	"errors"
	"fmt"
)

// Refusal is the error of an invalid action. Retrying does not help.
type Refusal struct{ Why string }

// Error returns the reason and the remedy.
func (r *Refusal) Error() string { return r.Why }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// Errors of actions, besides Refusal and the errors of target expressions.
var (
	// ErrOff means that the server does not allow actions.
	ErrOff = errors.New("actions are off: start muster fleet serve with --actions, and with --tokens or OpenID Connect")
	// ErrBusy means that too many actions are in progress.
	ErrBusy = errors.New("too many actions at once")
	// ErrAway means that NATS is unreachable.
	ErrAway = errors.New("NATS cannot be reached")
	// ErrUnknown is the error of an unknown action id.
	ErrUnknown = errors.New("unknown action: this server restarted, or another instance ran it")
	// ErrNobody means that the target has no nodes.
	ErrNobody = errors.New("no known node matches")
	// ErrAll means that an action on all nodes of a fleet that is not small lacks confirmation.
	ErrAll = errors.New("this is for all nodes: confirm it")
	// ErrOthers means that the target has other nodes than the user confirmed.
	ErrOthers = errors.New("other nodes match now than when they were shown")
)
