package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterfleet/muster/resources/resource"
)

// bootTime is how long what is done about the boot may take after the time of a
// resource is used up.
const bootTime = 15 * time.Second

// Apply does what is due, in the order of the plan. Whether a service runs has
// nothing to do with whether it starts at boot: where one fails, the other is
// done all the same.
func (*Type) Apply(ctx context.Context, env resource.Env, p ServiceProvider, spec *Spec, plan resource.Plan) (resource.Outcome, error) {
	actions := map[Action]func(context.Context, resource.Env, string) error{
		Start: p.Start, Stop: p.Stop, Restart: p.Restart, Enable: p.Enable, Disable: p.Disable,
	}
	var errs []error
	for _, change := range plan.Changes {
		act, known := actions[Action(change.Action)]
		if !known {
			return resource.Outcome{}, fmt.Errorf("a service cannot %q", change.Action)
		}
		ctx, cancel := timeFor(ctx, Action(change.Action))
		errs = append(errs, act(ctx, env, spec.Name))
		cancel()
	}

	return resource.Outcome{}, errors.Join(errs...)
}

// timeFor returns an action the time that it needs, where a start that took all the
// time there was would leave none for the boot.
func timeFor(ctx context.Context, action Action) (context.Context, context.CancelFunc) {
	if (action != Enable && action != Disable) || !isTimeUp(ctx) {
		return ctx, func() {}
	}

	return context.WithTimeout(context.WithoutCancel(ctx), bootTime)
}

// isTimeUp reports whether ctx has ended by itself and was not broken off.
func isTimeUp(ctx context.Context) bool { return errors.Is(ctx.Err(), context.DeadlineExceeded) }

// ApplyAll does what is due to many services with one command a step.
func (*Type) ApplyAll(ctx context.Context, env resource.Env, p ServiceProvider, specs []*Spec, plans []resource.Plan) ([]resource.Outcome, error) {
	failed := make(resource.Partly, len(specs))
	for at, s := range steps(plans) {
		names := make([]string, len(s.services))
		for k, i := range s.services {
			names[k] = specs[i].Name
		}
		stepCtx, cancel := timeFor(ctx, s.action)
		for k, err := range p.ChangeAll(stepCtx, env, s.action, names) {
			if err != nil && at == 0 && isTimeUp(stepCtx) {
				// Of a later step nobody knows how much time it had.
				err = resource.TimedOut{Err: err}
			}
			failed[s.services[k]] = errors.Join(failed[s.services[k]], err)
		}
		cancel()
	}

	return make([]resource.Outcome, len(specs)), failed.Err()
}

// step is an action and the numbers of the services that it is done to.
type step struct {
	action   Action
	services []int
}

// steps puts the changes of plans together. Services are started, stopped and
// restarted in their order, for one may make room for another. At boot one may
// take the place of another, so disabling comes before enabling.
func steps(plans []resource.Plan) []step {
	var out []step
	disable, enable := step{action: Disable}, step{action: Enable}
	for i, plan := range plans {
		for _, change := range plan.Changes {
			action, last := Action(change.Action), len(out)-1
			switch {
			case action == Disable:
				disable.services = append(disable.services, i)
			case action == Enable:
				enable.services = append(enable.services, i)
			case last >= 0 && out[last].action == action:
				out[last].services = append(out[last].services, i)
			default:
				out = append(out, step{action, []int{i}})
			}
		}
	}
	for _, s := range []step{disable, enable} {
		if len(s.services) > 0 {
			out = append(out, s)
		}
	}

	return out
}
