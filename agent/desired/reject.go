package desired

import (
	"context"
	"errors"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// handleInvalid handles a version that cannot run, and returns the reason. It rejects an invalid version and
// retries a transient error.
func (t *turn) handleInvalid(ctx context.Context, u *unit, e model.Entry, err error) reason {
	if ctx.Err() != nil {
		return reason{} // the agent stops
	}
	if errors.Is(err, ErrFetching) {
		return reasonOf(err) // not an error: Arrived ends the wait
	}
	if problems, invalid := model.FindProblems(err); invalid {
		t.reject(u, e, problems)
	} else {
		t.postpone(u, e, err)
	}

	return reasonOf(err)
}

// reject records an invalid version, once for each version and its problems, also across restarts.
func (t *turn) reject(u *unit, e model.Entry, problems model.Problems) {
	r := rejection{Revision: e.Revision, Sum: sumOf(e), Problems: reported(problems)}
	if slices.Contains(u.record.Refused, r) {
		return
	}
	u.clearRejection(e)
	u.record.Refused, u.unsaved = append(u.record.Refused, r), true
	t.result.Rejected = append(t.result.Rejected, Rejection{Entry: e, Digest: r.Sum, Problems: problems})
}

// postpone schedules a retry of a transient error.
func (t *turn) postpone(u *unit, e model.Entry, err error) {
	interval := t.in.Interval
	if u.active != nil && u.active.Resolution.Interval > 0 {
		interval = u.active.Resolution.Interval
	}
	u.retry.plan(interval)
	reason := reported(err)
	t.result.Postponed = append(t.result.Postponed, Postponement{Entry: e, Err: err, Retry: u.retry.at, New: u.retry.reported != reason})
	u.retry.reported = reason
}

// reported returns the identity of a reported error: its text, except for an error that contains the time.
func reported(err error) string {
	for _, reason := range []error{signed.ErrExpired, signed.ErrFuture} {
		if errors.Is(err, reason) {
			return reason.Error()
		}
	}

	return err.Error()
}
