// Package systemd manages system units of systemd. It reads them over D-Bus or with systemctl, and changes
// them with systemctl.
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

// source reads the units in the memory of systemd, in the order of their names. An error concerns all
// units.
type source interface {
	units(ctx context.Context, env resource.Env, names []string) ([]unit, error)
}

// Provider reads and changes systemd, one command at a time. Make it with New.
type Provider struct {
	reader  *reader
	changer *changer
	names   names
}

// New returns the provider for the machine with the root directory root: "/" for this machine.
func New(root string) *Provider {
	r := &reader{
		root: root, sources: []source{bus{root: root, timeout: busTimeout}, showCommand{}}, mu: make(mutex, 1), own: &own{unit: command.OwnUnit(root)},
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

// mutex is a mutex for systemctl and D-Bus. A caller can stop waiting for it.
type mutex chan struct{}

// acquire locks the mutex.
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

	return p.changer.reload(ctx, env)
}

// Watches returns the unit of a service, and the paths of which systemd sends no signals before it reads
// them: the unit file or the link that masks it, and the links that enable it in each existing
// directory for such links, or in multi-user.target.wants.
func (p *Provider) Watches(name string) []watch.Point {
	const units = "/etc/systemd/system"
	unit := service.UnitName(name)
	if unit == p.reader.own.unit {
		// muster runs in this unit whatever happens to it: a watch would signal each stop of muster.
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
