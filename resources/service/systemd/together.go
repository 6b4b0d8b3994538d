package systemd

import (
	"context"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
	"golang.org/x/sys/unix"
)

// ChangeAll applies an action to services with one systemctl, which continues after a
// failure. The states then show which services failed, even if ctx has ended: such services
// are not retried alone, so their errors carry their logs. One service is checked after it started. The
// action must not be deferred.
func (p *Provider) ChangeAll(ctx context.Context, env resource.Env, action service.Action, names []string) []error {
	if len(names) == 1 {
		return []error{p.changeOne(ctx, env, action, names[0])}
	}
	errs, units := make([]error, len(names)), p.names.resolve(env.RunID, names)
	began, start := sinceBoot(), time.Now()
	err := p.changer.changeMany(ctx, env, action, units)
	if err == nil {
		return errs
	}
	env.Log.DebugContext(ctx, "services not changed", "action", string(action), "services", len(names), "error", resource.WithoutOutput(err))
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	done := p.changer.done(looking, env, action, names, began)
	for i := range errs {
		if !done[i] {
			errs[i] = err
		}
	}
	if ctx.Err() != nil && (action == service.Start || action == service.Restart) {
		withLogs(ctx, env, units, start, errs)
	}

	return errs
}

// changeOne applies an action to a service. The action must not be deferred.
func (p *Provider) changeOne(ctx context.Context, env resource.Env, action service.Action, name string) error {
	names := p.names.resolve(env.RunID, []string{name})
	switch action {
	case service.Start, service.Restart, service.Reload, service.ReloadOrRestart:
		return p.changer.startAndCheck(ctx, env, action, names[0])
	default:
		return p.changer.changeMany(ctx, env, action, names)
	}
}

// done reports which services an action succeeded for. The action began at the given time.
func (c *changer) done(ctx context.Context, env resource.Env, action service.Action, names []string, began time.Duration) []bool {
	done := make([]bool, len(names))
	switch action {
	case service.Reload, service.ReloadOrRestart:
		// A service that did not reload may still run. The other services reload once more.
		return done
	case service.Restart:
		// A service that did not restart may still run.
		units, err := c.reader.show(ctx, env, unitNames(names))
		if err != nil {
			env.Log.DebugContext(ctx, "cannot tell which services restarted", "error", err.Error())
		}
		for i, u := range units {
			done[i] = u.active == "active" && u.activeSince >= began
		}
		return done
	}
	states, errs := c.reader.outcomes(ctx, env, names)
	for i, state := range states {
		if errs[i] != nil {
			continue
		}
		switch m := state.Metadata; action {
		case service.Start:
			done[i] = m.Running
		case service.Stop:
			done[i] = !m.Running && !state.Starting
		case service.Mask, service.Unmask:
			done[i] = strings.HasPrefix(m.UnitFile, "masked") == (action == service.Mask)
		case service.Reenable:
			done[i] = m.Enabled && state.Install == nil
		default:
			done[i] = m.Enabled == (action == service.Enable)
		}
	}

	return done
}

func unitNames(names []string) []string {
	units := make([]string, len(names))
	for i, name := range names {
		units[i] = service.UnitName(name)
	}

	return units
}

// bootTime is when systemd's clock of unit events began.
type bootTime struct {
	mu   sync.Mutex
	last time.Time
}

// bootSlack is the allowed difference between two readings of the clocks.
const bootSlack = 10 * time.Millisecond

// at returns the same time for each call while the clocks agree.
func (b *bootTime) at() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now().Round(0).Add(-sinceBoot()); now.Sub(b.last).Abs() > bootSlack {
		b.last = now
	}

	return b.last
}

// sinceBoot is the time on systemd's clock of unit events.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return math.MaxInt64 // nothing is known to be later
	}

	return time.Duration(t.Nano()).Truncate(time.Microsecond)
}
