package systemd

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
)

// own is the unit that muster itself runs in. systemd stops it by ending muster, and waits for
// that, so muster must not wait for systemd.
type own struct {
	// unit is the unit of the control group of this process, empty if there is none.
	unit string

	mu sync.Mutex
	// asked and ends are whether it is known that a stop of the unit ends this process, and is so.
	asked, ends bool
	// stops is the run that stops the unit at its end: in that run the unit counts as stopped. Other runs
	// see the real state, for example after that run was cancelled.
	stops string
}

// is reports whether muster runs in a unit and a stop of the unit ends muster.
func (o *own) is(ctx context.Context, env resource.Env, unit string) bool {
	if unit == "" || unit != o.unit {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asked {
		return o.ends
	}
	result, err := run(ctx, env, nil, systemctl, "show", "--system", "--property=MainPID,KillMode", "--", unit)
	if err != nil || result.ExitCode != 0 {
		env.Log.DebugContext(ctx, "cannot tell whether a stop of the unit ends muster", "unit", unit)
		return true
	}
	o.asked, o.ends = true, endsWith(result.Stdout.String(), os.Getpid())

	return o.ends
}

// endsWith reports whether a process of a unit with these properties ends when that is stopped:
// of some, such as cron, only the main process does.
func endsWith(properties string, pid int) bool {
	lines := strings.Fields(properties)

	return slices.Contains(lines, "MainPID="+strconv.Itoa(pid)) || !slices.Contains(lines, "KillMode=process") && !slices.Contains(lines, "KillMode=none")
}

// IsPostponed reports whether a change is one of muster's own unit that would end muster or wait for
// its end: it is asked for at the end of the run, and not waited for.
func (p *Provider) IsPostponed(ctx context.Context, env resource.Env, action service.Action, name string) bool {
	switch action {
	case service.Start, service.Stop, service.Restart, service.ReloadOrRestart:
		return p.isOwn(ctx, env, name)
	default:
		return false
	}
}

// isOwn reports whether a service is the unit that muster runs in.
func (p *Provider) isOwn(ctx context.Context, env resource.Env, name string) bool {
	return p.reader.own.is(ctx, env, service.UnitName(p.names.resolve(env.RunID, []string{name})[0]))
}

// Postpone returns what asks for a change of muster's own unit.
func (p *Provider) Postpone(_ context.Context, env resource.Env, action service.Action, _ string) func(context.Context) error {
	unit := p.reader.own
	unit.setStops("")
	if action == service.Stop {
		unit.setStops(env.RunID)
	}

	return func(ctx context.Context) error {
		env.Log.InfoContext(ctx, "asking systemd to "+string(action)+" the unit that muster runs in", "unit", unit.unit)
		err := p.changer.change(ctx, env, action, "--no-block", unit.unit)
		if err != nil {
			unit.setStops("")
		}

		return err
	}
}

// Postponed returns what asks for the stop of muster's own unit, where the run is to stop it.
func (p *Provider) Postponed(ctx context.Context, env resource.Env, name string) func(context.Context) error {
	if !p.reader.own.isStoppedBy(env.RunID) || !p.isOwn(ctx, env, name) {
		return nil
	}

	return p.Postpone(ctx, env, service.Stop, name)
}

func (o *own) setStops(run string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stops = run
}

// isStoppedBy reports whether a run is to stop the unit. To any other, it is active: it is what muster
// runs in, whatever it is about to be.
func (o *own) isStoppedBy(run string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()

	return run != "" && o.stops == run
}
