package engine

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// lookAfterFailure bounds the look at what a failed change left: the resource's
// own time may be used up by then.
const lookAfterFailure = 30 * time.Second

// change applies a plan, with the tries the resource asks for.
func (r *run) change(ctx context.Context, n *node, t *model.Transaction, plan resource.Plan, refresh bool) {
	t.Changes = r.showChanges(n, plan)
	if err := r.owe(ctx, n); err != nil {
		r.fail(ctx, n, t, err)
		return
	}
	outcome, err := r.attempts(ctx, n, plan, refresh)
	if err != nil {
		r.failChange(ctx, n, t, plan, refresh, err)
		return
	}
	r.succeed(ctx, n, t, plan, outcome, refresh)
}

// attempts applies until it succeeds or the tries are used up. The refresh is
// kept from try to try.
func (r *run) attempts(ctx context.Context, n *node, plan resource.Plan, refresh bool) (resource.Outcome, error) {
	meta := n.res.Meta()
	for try := 0; ; try++ {
		outcome, err := r.once(ctx, n, plan)
		if err == nil || try >= meta.Retry || !r.wait(ctx, meta.Delay.Std()) {
			return outcome, err
		}
		r.opts.Env.Log.InfoContext(ctx, "trying again", "resource", n.ref.String(), "try", try+2, "error", r.words(n, err))
		again, planErr := r.planAgain(ctx, n, refresh)
		switch {
		case planErr != nil:
			return outcome, planErr
		case again.Empty():
			return outcome, nil
		}
		plan = again
	}
}

// planAgain looks at a resource anew and plans without asking its guards, which
// are asked once a run.
func (r *run) planAgain(ctx context.Context, n *node, refresh bool) (plan resource.Plan, err error) {
	l := &r.looks[n.at]
	r.refreshLook(ctx, n)
	if l.err != nil {
		return plan, l.err
	}
	state := l.state
	if l.asked != nil {
		state = l.asked
	}
	err = protect(func() (err error) {
		plan, err = n.res.Type.Plan(l.spec, state, refresh)
		return err
	})

	return plan, err
}

// once applies a plan, looks at what came of it and judges that.
func (r *run) once(ctx context.Context, n *node, plan resource.Plan) (resource.Outcome, error) {
	ctx, cancel := r.attempt(ctx, n)
	defer cancel()
	l := &r.looks[n.at]
	var outcome resource.Outcome
	err := protect(func() (err error) {
		outcome, err = n.res.Type.Apply(ctx, r.env(n), l.provider, l.spec, plan)
		return err
	})
	r.touched(n)
	if err != nil {
		return outcome, err
	}
	l.taken = false
	r.refreshLook(ctx, n)
	if l.err != nil {
		return outcome, fmt.Errorf("%w: %w", model.ErrDesiredStateFailed, l.err)
	}

	return outcome, r.verify(n, outcome)
}

// touched makes old what a change of n may have changed.
func (r *run) touched(n *node) {
	r.eras.change(n.res.Type.Writes)
	if n.res.Type.Writes.Overlaps(resource.Accounts) && r.opts.Env.Host != nil {
		r.opts.Env.Host.ForgetAccounts()
	}
}

func (r *run) verify(n *node, outcome resource.Outcome) error {
	l := &r.looks[n.at]
	err := protect(func() error { return n.res.Type.Verify(l.spec, outcome, l.state) })
	if err != nil {
		return fmt.Errorf("%w: %w", model.ErrDesiredStateFailed, err)
	}

	return nil
}

// succeed records a change that was made and verified.
func (r *run) succeed(ctx context.Context, n *node, t *model.Transaction, plan resource.Plan, outcome resource.Outcome, refresh bool) {
	t.Changed = !outcome.Unchanged
	t.Refreshed = refresh && !plan.Unrefreshed
	r.results[n.at].changed, r.results[n.at].touched = t.Changed, t.Changed
	r.describe(n, t)
	r.keepOutputs(n, outcome)
	if t.Changed {
		r.noteDrift(n, true)
	}
	if refresh {
		r.settle(ctx, n)
	}
}

// failChange records a change that failed with the state that it left, and for
// its subscribers whether it left everything as it was, as far as that can be known.
func (r *run) failChange(ctx context.Context, n *node, t *model.Transaction, plan resource.Plan, refresh bool, err error) {
	r.noteDrift(n, false)
	looking, cancel := context.WithTimeout(ctx, lookAfterFailure)
	defer cancel()
	again, planErr := r.planAgain(looking, n, refresh)
	r.results[n.at].touched = !plan.Atomic || planErr != nil || !reflect.DeepEqual(again, plan)
	r.fail(ctx, n, t, err)
}

// keepOutputs keeps what later resources may take.
func (r *run) keepOutputs(n *node, outcome resource.Outcome) {
	if n.res.Type.Outputs == nil {
		return
	}
	l := r.looks[n.at]
	values := n.res.Type.Outputs(l.spec, l.state, outcome)
	if r.isSensitive(n) {
		for k, v := range values {
			values[k] = model.NewSecret(fmt.Sprint(v))
		}
	}
	r.outputs[n.ref] = values
	if alias := n.res.Meta().Alias; alias != "" {
		r.outputs[model.Ref{Type: n.ref.Type, Name: alias}] = values
	}
}

// now is when something happened.
func now() time.Time { return time.Now().UTC() }
