package desired

import (
	"context"
	"errors"

	"github.com/musterfleet/muster/model"
)

// judge verifies a version with the gate before any other code reads it. An active version stays active if it
// would not be accepted now, and is reported.
func (t *turn) judge(ctx context.Context, u *unit, e model.Entry) error {
	if e.Refused != "" {
		return nil // reading it fails for the same reason
	}
	good := u.record.Good
	before := good != nil && sameEntry(*good, e)
	err := t.o.Gate.Assignment(ctx, e, before)
	if !before {
		return err
	}
	if err != nil {
		u.untrusted = t.handleInvalid(ctx, u, e, err)
	}

	return nil
}

// errStillThere is transient: the key was assigned again, or a replica lags.
var errStillThere = errors.New("the bucket still has it")

// mayRemove reports whether a key that the bucket no longer has is unassigned. If signatures are required,
// the removal must be signed; otherwise the active version stays, and the removal is reported.
func (t *turn) mayRemove(ctx context.Context, u *unit) bool {
	if !t.o.Gate.Demands() || u.record.Good == nil {
		return true
	}
	e, err := t.o.Source.Removal(ctx, u.key)
	switch {
	case errors.Is(err, model.ErrNotFound):
		e, err = model.Entry{Key: u.key}, nil
	case err == nil && !e.Deleted:
		err = errStillThere
	}
	if err == nil {
		err = t.o.Gate.Removal(ctx, e)
	}
	if err == nil {
		return true
	}
	u.newest = nil
	u.untrusted = t.handleInvalid(ctx, u, e, err)
	// A later signed removal may not be noticed otherwise.
	u.retry.plan(t.in.Interval)

	return false
}
