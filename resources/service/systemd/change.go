package systemd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
)

// changer changes units with systemctl.
type changer struct {
	reader *reader
	// reloaded is the last time that systemd read its units. reader.mu guards it.
	reloaded reading
}

// reading is a moment at which systemd read its units: the run, and the directories at that
// time.
type reading struct {
	run  string
	dirs map[string]time.Time
}

func (c *changer) reload(ctx context.Context, env resource.Env) error {
	now, changes := reading{run: env.RunID, dirs: unitDirs(c.reader.root)}, env.Host.Units.Changes()
	if err := control(ctx, env, "daemon-reload", "--system"); err != nil {
		return err
	}
	c.reloaded = now
	env.Host.Units.NoteRead(changes)

	return nil
}

// reloadOnce reloads before the first change of a run, and again after unit files were added or
// removed: NeedDaemonReload of systemd misses the first drop-in of a unit. A run of a part
// does not reload again after an earlier run, because reading all units takes systemd longer than
// starting one stopped unit.
func (c *changer) reloadOnce(ctx context.Context, env resource.Env) error {
	same := env.RunID != "" && env.RunID == c.reloaded.run || env.Part && c.reloaded.dirs != nil
	if same && maps.Equal(c.reloaded.dirs, unitDirs(c.reader.root)) {
		return nil
	}

	return c.reload(ctx, env)
}

// changeMany applies an action to services, and does the work that systemctl omits.
func (c *changer) changeMany(ctx context.Context, env resource.Env, action service.Action, names []string) error {
	switch action {
	case service.Disable:
		return c.disable(ctx, env, names...)
	case service.Enable:
		if err := c.change(ctx, env, action, names...); err != nil {
			return err
		}
		c.rememberLinks(ctx, env, names)
		return nil
	case service.Reenable:
		if err := c.reenable(ctx, env, names); err != nil {
			return err
		}
		c.rememberLinks(ctx, env, names)
		return nil
	case service.Stop:
		defer c.rememberTransient(ctx, env, names)()
	case service.Unmask:
		if err := c.change(ctx, env, action, append([]string{"--runtime"}, names...)...); err != nil {
			return err
		}
	}

	return c.change(ctx, env, action, names...)
}

// change runs a systemctl command that changes services.
func (c *changer) change(ctx context.Context, env resource.Env, action service.Action, args ...string) error {
	release, err := c.reader.mu.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := c.reloadOnce(ctx, env); err != nil {
		return err
	}

	changes := env.Host.Units.Changes()
	argv := append([]string{string(action), "--system"}, afterOptions(args)...)
	err = control(ctx, env, argv...)
	if env.Part && isTooOften(err) {
		// The detection of flapping handles a service that a user stops repeatedly. The start limit of systemd
		// is for programs that end without a stop.
		if err := c.reload(ctx, env); err != nil {
			return err
		}
		err = control(ctx, env, argv...)
	}
	if err != nil {
		return err
	}
	if slices.Contains([]service.Action{service.Enable, service.Reenable, service.Disable, service.Mask, service.Unmask}, action) && !slices.ContainsFunc(args, func(name string) bool { return hasScript(c.reader.root, name) }) {
		// These reload by themselves, and made the links.
		c.reloaded = reading{run: env.RunID, dirs: unitDirs(c.reader.root)}
		env.Host.Units.NoteRead(changes)
	}

	return nil
}

// afterOptions inserts -- before the names if a name begins with a hyphen, such as -.mount.
func afterOptions(args []string) []string {
	first := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "--") })
	if first < 0 || !slices.ContainsFunc(args[first:], func(arg string) bool { return strings.HasPrefix(arg, "-") }) {
		return args
	}

	return slices.Insert(slices.Clone(args), first, "--")
}

// reenable makes the links of the [Install] sections of services and removes all others. With
// linked units it disables and enables, because systemctl reenable does not find them.
func (c *changer) reenable(ctx context.Context, env resource.Env, names []string) error {
	if len(linkedUnits(c.reader.root, names)) == 0 {
		return c.change(ctx, env, service.Reenable, names...)
	}
	if err := c.disable(ctx, env, names...); err != nil {
		return err
	}

	return c.change(ctx, env, service.Enable, names...)
}

// startAndCheck starts or refreshes a service and checks that it runs. The error
// carries its log.
func (c *changer) startAndCheck(ctx context.Context, env resource.Env, action service.Action, name string) error {
	began := time.Now()
	err := c.change(ctx, env, action, name)
	if err == nil {
		states, errs := c.reader.outcomes(ctx, env, []string{name})
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
