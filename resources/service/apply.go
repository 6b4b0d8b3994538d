package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/musterfleet/muster/resources/resource"
)

// bootTime is the time for enabling and disabling after the timeout of the resource.
const bootTime = 15 * time.Second

// startedByOthers reports which services only need a start and have started without muster. During a
// repair of drift another user may restart a service that stopped.
func startedByOthers(ctx context.Context, env resource.Env, p ServiceProvider, specs []*Spec, plans []resource.Plan) []bool {
	out := make([]bool, len(specs))
	if !env.Part {
		return out
	}
	var names []string
	var at []int
	for i, plan := range plans {
		if len(plan.Changes) == 1 && plan.Changes[0].Action == string(Start) {
			names, at = append(names, specs[i].Name), append(at, i)
		}
	}
	if len(names) == 0 {
		return out
	}
	for k, started := range p.AreStarted(ctx, env, names) {
		out[at[k]] = started
	}

	return out
}

// timeFor extends the time of enabling and disabling, because a slow start may have used the whole
// timeout.
func timeFor(ctx context.Context, action Action) (context.Context, context.CancelFunc) {
	if (action != Enable && action != Reenable && action != Disable) || !isTimeUp(ctx) {
		return ctx, func() {}
	}

	return context.WithTimeout(context.WithoutCancel(ctx), bootTime)
}

// isTimeUp reports whether ctx timed out, rather than being cancelled.
func isTimeUp(ctx context.Context) bool { return errors.Is(ctx.Err(), context.DeadlineExceeded) }

// ApplyAll changes services with one command for each step. Running and starting at boot are
// independent: if one fails, the other is still done. A deferred change follows at the end of the run
// if everything else succeeded.
func (Type) ApplyAll(ctx context.Context, env resource.Env, p ServiceProvider, specs []*Spec, plans []resource.Plan) ([]resource.Outcome, error) {
	failed, outcomes := make(resource.BatchError, len(specs)), make([]resource.Outcome, len(specs))
	for i, others := range startedByOthers(ctx, env, p, specs, plans) {
		outcomes[i].Unchanged = others
	}
	postponed := make([]Action, len(specs))
	for number, s := range steps(plans) {
		var names []string
		var at []int // of their specs
		for _, i := range s.services {
			if p.IsDeferred(ctx, env, s.action, specs[i].Name) {
				postponed[i] = s.action
				continue
			}
			names, at = append(names, specs[i].Name), append(at, i)
		}
		if len(names) == 0 {
			continue
		}
		stepCtx, cancel := timeFor(ctx, s.action)
		for k, err := range p.ChangeAll(stepCtx, env, s.action, names) {
			if err != nil && number == 0 && isTimeUp(stepCtx) {
				// A later step may have had less time than the timeout.
				err = resource.Concluded{Err: err}
			}
			failed[at[k]] = errors.Join(failed[at[k]], err)
		}
		cancel()
	}
	for i, spec := range specs {
		switch {
		case failed[i] != nil:
		case postponed[i] == "":
			outcomes[i].AtEnd = p.Deferred(ctx, env, spec.Name)
		default:
			outcomes[i].AtEnd = p.Defer(ctx, env, postponed[i], spec.Name)
		}
	}

	return outcomes, failed.Err()
}

// step is an action on services, by their indexes.
type step struct {
	action   Action
	services []int
}

// steps merges the changes of plans. Services are started, stopped and refreshed in plan order,
// because a service may free a resource for another service. Unmasking comes before all other steps and
// masking after them, because a masked service cannot change. Disabling comes before enabling, because
// one service may replace another at boot.
func steps(plans []resource.Plan) []step {
	var run []step
	var unmask, disable, enable, reenable, mask []int
	apart := map[Action]*[]int{Unmask: &unmask, Disable: &disable, Enable: &enable, Reenable: &reenable, Mask: &mask}
	for i, plan := range plans {
		for _, change := range plan.Changes {
			action, last := Action(change.Action), len(run)-1
			switch list := apart[action]; {
			case list != nil:
				*list = append(*list, i)
			case last >= 0 && run[last].action == action:
				run[last].services = append(run[last].services, i)
			default:
				run = append(run, step{action, []int{i}})
			}
		}
	}
	all := slices.Concat([]step{{Unmask, unmask}}, run, []step{{Disable, disable}, {Enable, enable}, {Reenable, reenable}, {Mask, mask}})

	return slices.DeleteFunc(all, func(s step) bool { return len(s.services) == 0 })
}
