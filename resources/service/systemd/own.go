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

// own is the unit that muster runs in. systemd stops the unit by ending muster and waits for the end, so
// muster must not wait for systemd.
type own struct {
	// unit is the unit of the control group of this process, empty if there is none.
	unit string

	mu sync.Mutex
	// asked reports that ends is known. ends reports that a stop of the unit ends this process.
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

// endsWith reports whether a process of a unit with these properties ends with the unit. Some units, such
// as cron, stop only the main process.
func endsWith(properties string, pid int) bool {
	lines := strings.Fields(properties)

	return slices.Contains(lines, "MainPID="+strconv.Itoa(pid)) || !slices.Contains(lines, "KillMode=process") && !slices.Contains(lines, "KillMode=none")
}

// IsDeferred reports whether a change affects the unit of muster and would end muster or wait for its end.
// muster requests such a change at the end of the run and does not wait for it.
func (p *Provider) IsDeferred(ctx context.Context, env resource.Env, action service.Action, name string) bool {
	switch action {
	case service.Start, service.Stop, service.Restart, service.ReloadOrRestart:
		return p.isOwn(ctx, env, name)
	default:
		return false
	}
}

func (p *Provider) isOwn(ctx context.Context, env resource.Env, name string) bool {
	return p.reader.own.is(ctx, env, service.UnitName(p.names.resolve(env.RunID, []string{name})[0]))
}

// Defer returns a function that requests a change of the unit of muster.
func (p *Provider) Defer(_ context.Context, env resource.Env, action service.Action, _ string) func(context.Context) error {
	unit := p.reader.own
	unit.setStops("")
	if action == service.Stop {
		unit.setStops(env.RunID)
	}

	return func(ctx context.Context) error {
		env.Log.InfoContext(ctx, "asking systemd to "+string(action)+" the unit that muster runs in", "unit", unit.unit)
		err := p.change(ctx, env, action, "--no-block", unit.unit)
		if err != nil {
			unit.setStops("")
		}

		return err
	}
}

// Deferred returns a function that requests the stop of the unit of muster, if the run deferred that stop.
func (p *Provider) Deferred(ctx context.Context, env resource.Env, name string) func(context.Context) error {
	if !p.reader.own.isStoppedBy(env.RunID) || !p.isOwn(ctx, env, name) {
		return nil
	}

	return p.Defer(ctx, env, service.Stop, name)
}

func (o *own) setStops(run string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stops = run
}

// isStoppedBy reports whether a run will stop the unit. For other runs the unit is active, because muster
// runs in it.
func (o *own) isStoppedBy(run string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()

	return run != "" && o.stops == run
}
