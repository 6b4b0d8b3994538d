// Package systemd manages the services of systemd, units of the system only: it
// reads them over D-Bus or with systemctl, and changes them with systemctl.
package systemd

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

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

// source reads what systemd has in memory of units, in the order of their names.
// An error is about all of them.
type source interface {
	units(ctx context.Context, env resource.Env, names []string) ([]unit, error)
}

// Provider asks and changes systemd, one command at a time. Make it with New.
type Provider struct {
	// root holds the files of the machine.
	root string
	// sources are tried in order.
	sources []source
	turn    turn
	// reloaded is when systemd last read its units. It is guarded by turn.
	reloaded reading
	names    names
	own      own
	booted   bootTime
}

// reading is a moment at which systemd read its units: the run, and the
// directories at that time.
type reading struct {
	run  string
	dirs map[string]time.Time
}

// New returns the provider for the machine whose files are below root: "/" for
// this one.
func New(root string) *Provider {
	return &Provider{
		root: root, sources: []source{bus{root: root, timeout: busTimeout}, showCommand{}}, turn: make(turn, 1), own: own{unit: command.OwnUnit(root)},
	}
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

// turn is held while systemd is asked or systemctl runs.
type turn chan struct{}

// acquire waits for the turn.
func (t turn) acquire(ctx context.Context) (release func(), err error) {
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

// Reload makes systemd read all units.
func (p *Provider) Reload(ctx context.Context, env resource.Env) error {
	release, err := p.turn.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()

	return p.reload(ctx, env)
}

func (p *Provider) reload(ctx context.Context, env resource.Env) error {
	now := reading{run: env.RunID, dirs: unitDirs(p.root)}
	if err := control(ctx, env, "daemon-reload", "--system"); err != nil {
		return err
	}
	p.reloaded = now

	return nil
}

// reloadOnce reloads before the first change of a run, and again after unit
// files came or went: systemd's NeedDaemonReload misses the first drop-in of a
// unit. A run of a part goes on from the runs before it: systemd takes longer to
// read all units than to start the one that somebody stopped.
func (p *Provider) reloadOnce(ctx context.Context, env resource.Env) error {
	same := env.RunID != "" && env.RunID == p.reloaded.run || env.Part && p.reloaded.dirs != nil
	if same && maps.Equal(p.reloaded.dirs, unitDirs(p.root)) {
		return nil
	}

	return p.reload(ctx, env)
}

// Stop stops a service.
func (p *Provider) Stop(ctx context.Context, env resource.Env, name string) error {
	return p.Change(ctx, env, service.Stop, name)
}

// Start starts a service.
func (p *Provider) Start(ctx context.Context, env resource.Env, name string) error {
	return p.Change(ctx, env, service.Start, name)
}

// Restart restarts a service.
func (p *Provider) Restart(ctx context.Context, env resource.Env, name string) error {
	return p.Change(ctx, env, service.Restart, name)
}

// Enable makes a service start at boot.
func (p *Provider) Enable(ctx context.Context, env resource.Env, name string) error {
	return p.Change(ctx, env, service.Enable, name)
}

// Disable keeps a service from starting at boot.
func (p *Provider) Disable(ctx context.Context, env resource.Env, name string) error {
	return p.Change(ctx, env, service.Disable, name)
}

// Change applies an action to a service. What Postpone returns something for must not be changed by it.
func (p *Provider) Change(ctx context.Context, env resource.Env, action service.Action, name string) error {
	names := p.names.resolve(env.RunID, []string{name})
	switch action {
	case service.Start, service.Restart, service.Reload, service.ReloadOrRestart:
		return p.startAndCheck(ctx, env, action, names[0])
	default:
		return p.changeMany(ctx, env, action, names)
	}
}

// changeMany applies an action to services, with what systemctl leaves out of it.
func (p *Provider) changeMany(ctx context.Context, env resource.Env, action service.Action, names []string) error {
	switch action {
	case service.Disable:
		return p.disable(ctx, env, names...)
	case service.Unmask:
		if err := p.change(ctx, env, action, append([]string{"--runtime"}, names...)...); err != nil {
			return err
		}
	}

	return p.change(ctx, env, action, names...)
}

// change runs a systemctl command that changes services.
func (p *Provider) change(ctx context.Context, env resource.Env, action service.Action, args ...string) error {
	release, err := p.turn.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := p.reloadOnce(ctx, env); err != nil {
		return err
	}

	argv := append([]string{string(action), "--system"}, args...)
	err = control(ctx, env, argv...)
	if env.Part && isTooOften(err) {
		// Whether somebody stops it again and again is judged by flapping: systemd is to count
		// the starts of a program that ends by itself.
		if err := p.reload(ctx, env); err != nil {
			return err
		}
		err = control(ctx, env, argv...)
	}
	if err != nil {
		return err
	}
	if slices.Contains([]service.Action{service.Enable, service.Disable, service.Mask, service.Unmask}, action) && !slices.ContainsFunc(args, func(name string) bool { return hasScript(p.root, name) }) {
		// These reload by themselves, and made the links.
		p.reloaded = reading{run: env.RunID, dirs: unitDirs(p.root)}
	}

	return nil
}

// startAndCheck starts or refreshes a service and checks that it runs. The error
// carries its log.
func (p *Provider) startAndCheck(ctx context.Context, env resource.Env, action service.Action, name string) error {
	began := time.Now()
	err := p.change(ctx, env, action, name)
	if err == nil {
		states, errs := p.outcomes(ctx, env, []string{name})
		if err = errs[0]; err == nil && !states[0].Metadata.Running {
			err = fmt.Errorf("%w: %s is %s after %s %s", model.ErrDesiredStateFailed, name, states[0].Metadata.Active, systemctl, action)
		}
	}
	if err == nil {
		return nil
	}
	errs := []error{err}
	withLogs(ctx, env, []string{name}, began, errs)

	return errs[0]
}

// Watches returns the unit of a service. What systemd has not read yet it does not tell
// about: its file, or the link that masks it, and the links that enable it, in each directory
// there is for them. Those of a directory that is made later are not watched, but for those of
// multi-user.target.
func (p *Provider) Watches(name string) []watch.Point {
	const units = "/etc/systemd/system"
	unit := service.UnitName(name)
	if unit == p.own.unit {
		// It runs whatever happens to it: it would be looked at whenever it is told to end.
		return resource.WatchPaths(filepath.Join(units, unit), filepath.Join(units, "multi-user.target.wants", unit))
	}
	paths := []string{filepath.Join(units, unit), filepath.Join(units, "multi-user.target.wants", unit)}
	for _, entry := range entries(filepath.Join(p.root, units)) {
		if path := filepath.Join(units, entry.Name(), unit); entry.IsDir() && wants(entry.Name()) && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}

	return append(resource.WatchPaths(paths...), watch.Point{Kind: watch.Unit, Name: unit})
}
