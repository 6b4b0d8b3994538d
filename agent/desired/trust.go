package desired

import (
	"context"
	"errors"

	"github.com/musterfleet/muster/model"
)

// judge lets the gate judge a version before anything else reads it. One that was in
// force before stays so when it would not be accepted now, and is reported.
func (t *turn) judge(ctx context.Context, u *unit, e model.Entry) error {
	if e.Refused != "" {
		return nil // whoever reads it rejects it, for that reason
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

// errStillThere passes: it was assigned again meanwhile, or a replica lags.
var errStillThere = errors.New("the bucket still has it")

// mayRemove reports whether a key that the bucket does not have any more is
// unassigned. Where signatures are demanded, the message that ended it must be signed
// too: else what is in force stays so, and that is reported.
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
	// Another removal, which is signed, may not be noticed otherwise.
	u.retry.plan(t.in.Interval)

	return false
}
