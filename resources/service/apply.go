package service

import (
	"context"
	"fmt"

	"github.com/musterfleet/muster/resources/resource"
)

// Apply does what is due, in the order of the plan.
func (*Type) Apply(ctx context.Context, env resource.Env, p ServiceProvider, spec *Spec, plan resource.Plan) (resource.Outcome, error) {
	actions := map[Action]func(context.Context, resource.Env, string) error{
		Start: p.Start, Stop: p.Stop, Restart: p.Restart, Enable: p.Enable, Disable: p.Disable,
	}
	for _, change := range plan.Changes {
		act, known := actions[Action(change.Action)]
		if !known {
			return resource.Outcome{}, fmt.Errorf("a service cannot %q", change.Action)
		}
		if err := act(ctx, env, spec.Name); err != nil {
			return resource.Outcome{}, err
		}
	}

	return resource.Outcome{}, nil
}

// ApplyAll does what is due to many services with one command a step. A service
// that a step failed for has no part in the later ones.
func (*Type) ApplyAll(ctx context.Context, env resource.Env, p ServiceProvider, specs []*Spec, plans []resource.Plan) ([]resource.Outcome, error) {
	failed := make(resource.Partly, len(specs))
	for _, s := range steps(plans) {
		var numbers []int
		var names []string
		for _, i := range s.services {
			if failed[i] == nil {
				numbers, names = append(numbers, i), append(names, specs[i].Name)
			}
		}
		if len(names) == 0 {
			continue
		}
		for at, err := range p.ChangeAll(ctx, env, s.action, names) {
			failed[numbers[at]] = err
		}
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
