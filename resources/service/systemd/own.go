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
	// unit is that of the control group of this process, empty for none.
	unit string

	mu sync.Mutex
	// asked and ends are whether it is known that a stop of the unit ends this process, and is so.
	asked, ends bool
	// stops is the run that stops it at its end: for that it counts as stopped. Others, such as
	// after one that was cancelled, see what is so.
	stops string
}

// is reports whether a unit is the one that muster runs in, and a stop of it ends muster.
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

// Postpone returns what asks for a change of muster's own unit, which would end muster or wait for
// its end: at the end of the run, and not waited for. It is nil for any other change.
func (p *Provider) Postpone(ctx context.Context, env resource.Env, action service.Action, name string) func(context.Context) error {
	switch action {
	case service.Start, service.Stop, service.Restart, service.ReloadOrRestart:
	default:
		return nil
	}
	own := p.reader.own
	if !own.is(ctx, env, service.UnitName(p.names.resolve(env.RunID, []string{name})[0])) {
		return nil
	}
	own.setStops("")
	if action == service.Stop {
		own.setStops(env.RunID)
	}

	return func(ctx context.Context) error {
		env.Log.InfoContext(ctx, "asking systemd to "+string(action)+" the unit that muster runs in", "unit", own.unit)
		err := p.changer.change(ctx, env, action, "--no-block", own.unit)
		if err != nil {
			own.setStops("")
		}

		return err
	}
}

func (o *own) setStops(run string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stops = run
}

// active returns whether the unit counts as active in a run: it is what muster runs in, whatever
// it is about to be, unless the run is to stop it.
func (o *own) active(run string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if run != "" && o.stops == run {
		return "inactive"
	}

	return "active"
}
