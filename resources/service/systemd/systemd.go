// Package systemd is the provider of services that systemd manages, by
// systemctl and for units of the system.
package systemd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
)

const (
	providerName = "systemd"
	// priority is the best there is.
	priority  = 1
	systemctl = "systemctl"
)

// Provider runs systemctl, one at a time. Make it with New.
type Provider struct {
	// root is where the files of the machine are.
	root string
	// turn is held by whoever runs systemctl.
	turn chan struct{}
	// reloaded says as of when systemd has read its units. It belongs to turn.
	reloaded reading
}

// reading is a time at which systemd read its units: the run, and the
// directories it read as they were then.
type reading struct {
	run  string
	dirs map[string]time.Time
}

// New makes the provider for the machine whose files are seen below root: "/"
// for that which muster runs on.
func New(root string) *Provider { return &Provider{root: root, turn: make(chan struct{}, 1)} }

// Name is systemd.
func (*Provider) Name() string { return providerName }

// IsManageable reports whether systemctl is in PATH.
func (*Provider) IsManageable(model.Facts, resource.Spec) (bool, int, error) {
	if _, err := command.FindProgram(systemctl); err != nil {
		return false, 0, err
	}

	return true, priority, nil
}

// take waits for the turn to run systemctl.
func (p *Provider) take(ctx context.Context) (give func(), err error) {
	select {
	case p.turn <- struct{}{}:
		return func() { <-p.turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another %s: %w", systemctl, context.Cause(ctx))
	}
}

// run runs a program whose output is not to be in anybody's language.
func run(ctx context.Context, env resource.Env, onLine func(string, bool), argv ...string) (command.Result, error) {
	return env.Host.Run(ctx, command.Command{Argv: argv, Env: []string{"LC_ALL=C.UTF-8"}, OnLine: onLine})
}

// Reload lets systemd read all units anew.
func (p *Provider) Reload(ctx context.Context, env resource.Env) error {
	give, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer give()

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

// reloadOnce reloads before the first change of a run, and again when files of
// units came or went since: systemd's own NeedDaemonReload misses the first
// drop-in of a unit.
func (p *Provider) reloadOnce(ctx context.Context, env resource.Env) error {
	if env.RunID != "" && env.RunID == p.reloaded.run && maps.Equal(p.reloaded.dirs, unitDirs(p.root)) {
		return nil
	}

	return p.reload(ctx, env)
}

// Stop stops a service.
func (p *Provider) Stop(ctx context.Context, env resource.Env, name string) error {
	return p.change(ctx, env, service.Stop, name)
}

// Start starts a service.
func (p *Provider) Start(ctx context.Context, env resource.Env, name string) error {
	return p.bringUp(ctx, env, service.Start, name)
}

// Restart restarts a service.
func (p *Provider) Restart(ctx context.Context, env resource.Env, name string) error {
	return p.bringUp(ctx, env, service.Restart, name)
}

// Enable lets a service start at boot.
func (p *Provider) Enable(ctx context.Context, env resource.Env, name string) error {
	return p.change(ctx, env, service.Enable, name)
}

// Disable keeps a service from starting at boot.
func (p *Provider) Disable(ctx context.Context, env resource.Env, name string) error {
	return p.disable(ctx, env, name)
}

// change runs a systemctl that changes something about services.
func (p *Provider) change(ctx context.Context, env resource.Env, action service.Action, args ...string) error {
	give, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer give()
	if err := p.reloadOnce(ctx, env); err != nil {
		return err
	}

	if err := control(ctx, env, append([]string{string(action), "--system"}, args...)...); err != nil {
		return err
	}
	if (action == service.Enable || action == service.Disable) && !slices.ContainsFunc(args, p.hasScript) {
		// These reload by themselves, and the links they made are no news.
		p.reloaded = reading{run: env.RunID, dirs: unitDirs(p.root)}
	}

	return nil
}

// bringUp starts or restarts a service, and looks whether it runs then. What
// went wrong is in its log.
func (p *Provider) bringUp(ctx context.Context, env resource.Env, action service.Action, name string) error {
	began := time.Now()
	err := p.change(ctx, env, action, name)
	if err == nil {
		var state *service.State
		if state, err = p.Status(ctx, env, name); err == nil && !state.Metadata.Running {
			err = fmt.Errorf("%w: %s is %s after %s %s", model.ErrDesiredStateFailed, name, state.Metadata.Active, systemctl, action)
		}
	}
	if err == nil {
		return nil
	}
	errs := []error{err}
	withLogs(ctx, env, []string{name}, began, errs)

	return errs[0]
}
