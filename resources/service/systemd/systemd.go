// Package systemd manages system units of systemd. It reads them over D-Bus or with systemctl, and changes
// them with systemctl.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
)

const (
	providerName = "systemd"
	// priority is the best one.
	priority  = 1
	systemctl = "systemctl"
)

// source reads the units in the memory of systemd, in the order of their names. An error concerns all
// units.
type source interface {
	units(ctx context.Context, env resource.Env, names []string) ([]unit, error)
}

// Provider reads and changes systemd, one command at a time. Make it with New.
type Provider struct {
	reader *reader
	names  names
	// reloaded is the last time that systemd read its units. reader.mu guards it.
	reloaded reading
}

// New returns the provider for the machine with the root directory root: "/" for this machine.
func New(root string) *Provider {
	return &Provider{reader: &reader{
		root: root, sources: []source{bus{root: root, timeout: busTimeout}, showCommand{}}, mu: make(mutex, 1), own: &own{unit: command.OwnUnit(root)},
	}}
}

// Name is systemd.
func (*Provider) Name() string { return providerName }

// IsManageable reports whether systemctl is in PATH.
func (*Provider) IsManageable(model.Facts, resource.Spec) (bool, int, error) {
	if _, err := command.FindProgram(systemctl); err != nil {
		return false, 0, err
	}

	return true, priority, nil
}

// mutex is a mutex for systemctl and D-Bus. A caller can stop waiting for it.
type mutex chan struct{}

func (t mutex) acquire(ctx context.Context) (release func(), err error) {
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another %s: %w", systemctl, context.Cause(ctx))
	}
}

// run runs a program with untranslated output.
func run(ctx context.Context, env resource.Env, onLine func(string, bool), argv ...string) (command.Result, error) {
	return env.Host.Run(ctx, command.Command{Argv: argv, Env: []string{"LC_ALL=C.UTF-8"}, OnLine: onLine})
}

// StatusAll reads all services with one systemctl show, and derives the answers of is-active and
// is-enabled. It reads services that reload or stop again for up to 5 s. For a single service it waits
// minutes while systemd has a job for it, because another user restarts it. Any name of a unit works,
// but a run must always use the same name.
func (p *Provider) StatusAll(ctx context.Context, env resource.Env, names []string) ([]*service.State, []error) {
	states, errs := make([]*service.State, len(names)), make([]error, len(names))
	for i, l := range p.reader.look(ctx, env, names) {
		states[i], errs[i] = l.state, l.err
		if errors.Is(l.err, service.ErrNotFound) && wasTransient(env, service.UnitName(names[i])) {
			errs[i] = fmt.Errorf("%s: %w", names[i], service.ErrStopped)
		}
		if l.unit == "" {
			continue
		}
		if err := p.names.note(env.RunID, service.UnitName(names[i]), l.unit); err != nil {
			states[i], errs[i] = nil, err
		}
	}

	return states, errs
}

// AreStarted reports which services are active, or have a job of systemd that starts them. muster has no
// job yet for the services that it is going to start.
func (p *Provider) AreStarted(ctx context.Context, env resource.Env, names []string) []bool {
	out := make([]bool, len(names))
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	units, err := p.reader.show(ctx, env, unitNames(names))
	if err != nil {
		env.Log.DebugContext(ctx, "cannot tell who starts services", "error", err.Error())
	}
	for i, u := range units {
		out[i] = u.active == "active" || u.job && (u.active == "inactive" || u.active == activating)
	}

	return out
}

// Reload makes systemd read all units.
func (p *Provider) Reload(ctx context.Context, env resource.Env) error {
	release, err := p.reader.mu.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()

	return p.reload(ctx, env)
}

// Watches returns the unit of a service, and the paths of which systemd sends no signals before it reads
// them: the unit file or the link that masks it, and the links that enable it in each existing
// directory for such links, or in multi-user.target.wants.
func (p *Provider) Watches(name string) []watch.Point {
	const units = "/etc/systemd/system"
	unit := service.UnitName(name)
	paths := []string{filepath.Join(units, unit), filepath.Join(units, "multi-user.target.wants", unit)}
	if unit == p.reader.own.unit {
		// muster runs in this unit whatever happens to it: a watch would signal each stop of muster.
		return resource.WatchPaths(paths...)
	}
	for _, entry := range entries(filepath.Join(p.reader.root, units)) {
		if path := filepath.Join(units, entry.Name(), unit); entry.IsDir() && wants(entry.Name()) && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}

	return append(resource.WatchPaths(paths...), watch.Point{Kind: watch.Unit, Name: unit})
}

// ChangeAll applies an action to services with one systemctl, which continues after a
// failure. The states then show which services failed, even if ctx has ended: such services
// are not retried alone, so their errors carry their logs. One service is checked after it started. The
// action must not be deferred.
func (p *Provider) ChangeAll(ctx context.Context, env resource.Env, action service.Action, names []string) []error {
	errs, units := make([]error, len(names)), p.names.resolve(env.RunID, names)
	if len(names) == 1 {
		switch action {
		case service.Start, service.Restart, service.Reload, service.ReloadOrRestart:
			return []error{p.startAndCheck(ctx, env, action, units[0])}
		default:
			return []error{p.changeMany(ctx, env, action, units)}
		}
	}
	began, start := sinceBoot(), time.Now()
	err := p.changeMany(ctx, env, action, units)
	if err == nil {
		return errs
	}
	env.Log.DebugContext(ctx, "services not changed", "action", string(action), "services", len(names), "error", resource.WithoutOutput(err))
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	done := p.done(looking, env, action, names, began)
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

// done reports which services an action succeeded for. The action began at the given time.
func (p *Provider) done(ctx context.Context, env resource.Env, action service.Action, names []string, began time.Duration) []bool {
	done := make([]bool, len(names))
	switch action {
	case service.Reload, service.ReloadOrRestart:
		// A service that did not reload may still run. The other services reload once more.
		return done
	case service.Restart:
		// A service that did not restart may still run.
		units, err := p.reader.show(ctx, env, unitNames(names))
		if err != nil {
			env.Log.DebugContext(ctx, "cannot tell which services restarted", "error", err.Error())
		}
		for i, u := range units {
			done[i] = u.active == "active" && u.activeSince >= began
		}
		return done
	}
	for i, l := range p.reader.look(ctx, env, names) {
		if l.err != nil {
			continue
		}
		switch m := l.state.Metadata; action {
		case service.Start:
			done[i] = m.Running
		case service.Stop:
			done[i] = !m.Running && !l.state.Starting
		case service.Mask, service.Unmask:
			done[i] = strings.HasPrefix(m.UnitFile, "masked") == (action == service.Mask)
		case service.Reenable:
			done[i] = m.Enabled && l.state.Install == nil
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

// maxNamed is the maximum number of runs with stored names, because runs may run in parallel.
const maxNamed = 16

type names struct {
	mu sync.Mutex
	// runs holds the names of each run, the newest last.
	runs []named
}

type named struct {
	run string
	// units maps names to units, and first maps units to the first name that the run used.
	units, first map[string]string
}

// of returns the names of a run. It stores nothing for calls outside of a run. The caller holds the lock.
func (n *names) of(run string) named {
	at := slices.IndexFunc(n.runs, func(r named) bool { return r.run == run })
	if at >= 0 && run != "" {
		return n.runs[at]
	}
	if at >= 0 {
		n.runs = slices.Delete(n.runs, at, at+1)
	}
	r := named{run: run, units: map[string]string{}, first: map[string]string{}}
	n.runs = append(n.runs[max(0, len(n.runs)-maxNamed+1):], r)

	return r
}

// note records the unit of a name. A second name of a unit in a run is an error.
func (n *names) note(run, name, unit string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.of(run)
	if r.first[unit] == "" {
		r.first[unit] = name
	}
	r.units[name] = unit
	if other := r.first[unit]; other != name {
		return fmt.Errorf("%s and %s are names of one unit, %s, which is declared twice: leave one of them out", other, name, unit)
	}

	return nil
}

// resolve returns the units of services. It keeps a service that the run did not observe under another
// name.
func (n *names) resolve(run string, services []string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := slices.IndexFunc(n.runs, func(r named) bool { return r.run == run })
	out := slices.Clone(services)
	for i, name := range services {
		if at < 0 {
			break
		}
		if unit := service.UnitName(name); n.runs[at].units[unit] != "" && n.runs[at].units[unit] != unit {
			out[i] = n.runs[at].units[unit]
		}
	}

	return out
}
