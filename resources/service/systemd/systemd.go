// Package systemd manages the services of systemd, units of the system only: it
// reads them over D-Bus or with systemctl, and changes them with systemctl.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

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
	reader  *reader
	changer *changer
	names   names
}

// New returns the provider for the machine whose files are below root: "/" for
// this one.
func New(root string) *Provider {
	r := &reader{
		root: root, sources: []source{bus{root: root, timeout: busTimeout}, showCommand{}}, turn: make(turn, 1), own: &own{unit: command.OwnUnit(root)},
	}

	return &Provider{reader: r, changer: &changer{reader: r}}
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

// StatusAll reads all services with one systemctl show, from which the answers
// of is-active and is-enabled follow. Services that reload or stop are read
// again for up to 5 s, one alone for minutes while systemd has a job for it: somebody restarts it.
// A service may be named by any name of its unit, but only by one of them in a run.
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

// AreStarted looks which services are active, or have a job of systemd that makes them so: muster
// has none of its own for what it is about to start.
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
	release, err := p.reader.turn.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()

	return p.changer.reload(ctx, env)
}

// Watches returns the unit of a service. What systemd has not read yet it does not tell
// about: its file, or the link that masks it, and the links that enable it, in each directory
// there is for them. Those of a directory that is made later are not watched, but for those of
// multi-user.target.
func (p *Provider) Watches(name string) []watch.Point {
	const units = "/etc/systemd/system"
	unit := service.UnitName(name)
	if unit == p.reader.own.unit {
		// It runs whatever happens to it: it would be looked at whenever it is told to end.
		return resource.WatchPaths(filepath.Join(units, unit), filepath.Join(units, "multi-user.target.wants", unit))
	}
	paths := []string{filepath.Join(units, unit), filepath.Join(units, "multi-user.target.wants", unit)}
	for _, entry := range entries(filepath.Join(p.reader.root, units)) {
		if path := filepath.Join(units, entry.Name(), unit); entry.IsDir() && wants(entry.Name()) && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}

	return append(resource.WatchPaths(paths...), watch.Point{Kind: watch.Unit, Name: unit})
}
