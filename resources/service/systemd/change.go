package systemd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
)

// reading is a moment at which systemd read its units: the run, and the directories at that
// time.
type reading struct {
	run  string
	dirs map[string]time.Time
}

func (p *Provider) reload(ctx context.Context, env resource.Env) error {
	now, changes := reading{run: env.RunID, dirs: unitDirs(p.reader.root)}, env.Host.Units.Changes()
	if err := control(ctx, env, "daemon-reload", "--system"); err != nil {
		return err
	}
	p.reloaded = now
	env.Host.Units.NoteRead(changes)

	return nil
}

// reloadOnce reloads before the first change of a run, and again after unit files were added or
// removed: NeedDaemonReload of systemd misses the first drop-in of a unit. A run of a part
// does not reload again after an earlier run, because reading all units takes systemd longer than
// starting one stopped unit.
func (p *Provider) reloadOnce(ctx context.Context, env resource.Env) error {
	same := env.RunID != "" && env.RunID == p.reloaded.run || env.Part && p.reloaded.dirs != nil
	if same && maps.Equal(p.reloaded.dirs, unitDirs(p.reader.root)) {
		return nil
	}

	return p.reload(ctx, env)
}

// changeMany applies an action to services, and does the work that systemctl omits.
func (p *Provider) changeMany(ctx context.Context, env resource.Env, action service.Action, names []string) error {
	switch action {
	case service.Disable:
		return p.disable(ctx, env, names...)
	case service.Enable:
		if err := p.change(ctx, env, action, names...); err != nil {
			return err
		}
		p.rememberLinks(ctx, env, names)
		return nil
	case service.Reenable:
		if err := p.reenable(ctx, env, names); err != nil {
			return err
		}
		p.rememberLinks(ctx, env, names)
		return nil
	case service.Stop:
		defer p.rememberTransient(ctx, env, names)()
	case service.Unmask:
		if err := p.change(ctx, env, action, append([]string{"--runtime"}, names...)...); err != nil {
			return err
		}
	}

	return p.change(ctx, env, action, names...)
}

// change runs a systemctl command that changes services.
func (p *Provider) change(ctx context.Context, env resource.Env, action service.Action, args ...string) error {
	release, err := p.reader.mu.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := p.reloadOnce(ctx, env); err != nil {
		return err
	}

	changes := env.Host.Units.Changes()
	argv := append([]string{string(action), "--system"}, afterOptions(args)...)
	err = control(ctx, env, argv...)
	if env.Part && isTooOften(err) {
		// The detection of flapping handles a service that a user stops repeatedly. The start limit of systemd
		// is for programs that end without a stop.
		if err := p.reload(ctx, env); err != nil {
			return err
		}
		err = control(ctx, env, argv...)
	}
	if err != nil {
		return err
	}
	if slices.Contains([]service.Action{service.Enable, service.Reenable, service.Disable, service.Mask, service.Unmask}, action) && !slices.ContainsFunc(args, func(name string) bool { return hasScript(p.reader.root, name) }) {
		// These reload by themselves, and made the links.
		p.reloaded = reading{run: env.RunID, dirs: unitDirs(p.reader.root)}
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
func (p *Provider) reenable(ctx context.Context, env resource.Env, names []string) error {
	if len(linkedUnits(p.reader.root, names)) == 0 {
		return p.change(ctx, env, service.Reenable, names...)
	}
	if err := p.disable(ctx, env, names...); err != nil {
		return err
	}

	return p.change(ctx, env, service.Enable, names...)
}

// startAndCheck starts or refreshes a service and checks that it runs. The error
// carries its log.
func (p *Provider) startAndCheck(ctx context.Context, env resource.Env, action service.Action, name string) error {
	began := time.Now()
	err := p.change(ctx, env, action, name)
	if err == nil {
		after := p.reader.look(ctx, env, []string{name})[0]
		// Another program may restart the service at this moment.
		for end := time.Now().Add(settleTime); after.err == nil && !after.state.Metadata.Running && after.job && time.Now().Before(end); {
			time.Sleep(settlePause)
			after = p.reader.look(ctx, env, []string{name})[0]
		}
		if err = after.err; err == nil && !after.state.Metadata.Running {
			err = fmt.Errorf("%w: %s is %s after %s %s", model.ErrDesiredStateFailed, name, after.state.Metadata.Active, systemctl, action)
		}
	}
	if err == nil {
		return nil
	}
	errs := []error{err}
	withLogs(ctx, env, []string{name}, began, errs)

	return errs[0]
}

// link is the systemctl command for a unit with a file in another directory.
const link service.Action = "link"

// disable also disables units that are enabled until the next boot, which
// systemctl disable ignores.
func (p *Provider) disable(ctx context.Context, env resource.Env, names ...string) error {
	if err := p.disableAt(ctx, env, nil, names); err != nil {
		return err
	}
	var errs []error
	var atRuntime []string
	for i, l := range p.reader.look(ctx, env, names) {
		errs = append(errs, l.err)
		if l.err == nil && l.state.Metadata.UnitFile == enabledRuntime {
			atRuntime = append(atRuntime, names[i])
		}
	}
	if err := errors.Join(errs...); err != nil || len(atRuntime) == 0 {
		return err
	}

	return p.disableAt(ctx, env, []string{"--runtime"}, atRuntime)
}

// disableAt runs systemctl disable, which removes a unit altogether when
// systemd knows it only by a link. Such links are restored, even after an
// error.
func (p *Provider) disableAt(ctx context.Context, env resource.Env, options, names []string) error {
	linked := linkedUnits(p.reader.root, names)
	errs := []error{p.change(ctx, env, service.Disable, append(options, names...)...)}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	for _, l := range linked {
		if _, err := os.Lstat(l.path); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		errs = append(errs, p.change(ctx, env, link, append(l.options, l.target)...))
	}

	return errors.Join(errs...)
}

// linkedUnit is a link to a unit file outside of systemd's directories, with
// the options of systemctl link that make it.
type linkedUnit struct {
	path, target string
	options      []string
}

// linkedUnits returns the links of services that are known by one.
func linkedUnits(root string, names []string) []linkedUnit {
	var out []linkedUnit
	for _, unit := range unitNames(names) {
		for dir, options := range map[string][]string{"/etc/systemd/system": nil, "/run/systemd/system": {"--runtime"}} {
			path := filepath.Join(root, dir, unit)
			target, err := os.Readlink(path)
			if err != nil || target == os.DevNull {
				continue
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(dir, target)
			}
			// A link of another name is an alias, which disabling removes. A file in a
			// directory of systemd is found without a link.
			if filepath.Base(target) == unit && !strings.HasSuffix(filepath.Dir(target), "/systemd/system") {
				out = append(out, linkedUnit{path: path, target: target, options: options})
			}
		}
	}

	return out
}

const (
	// logLines is the number of log lines in the error of a service.
	logLines = 10
	// logTime limits the wait for the log lines.
	logTime = 5 * time.Second
)

// control runs systemctl. A failing exit code is an error with the last lines
// of stderr.
func control(ctx context.Context, env resource.Env, args ...string) error {
	result, err := run(ctx, env, nil, append([]string{systemctl}, args...)...)
	if err != nil || result.ExitCode == 0 {
		return err
	}
	err = fmt.Errorf("%s %s: exit code %d", systemctl, strings.Join(args, " "), result.ExitCode)
	if said := result.Stderr.LastLines(logLines); said != "" {
		err = resource.CommandError{Err: err, Output: strings.ToValidUTF8(said, "\uFFFD")}
	}

	return err
}

// isTooOften reports whether systemd refused a start because of the start limit. systemd counts again from
// zero after it reads its units.
func isTooOften(err error) bool {
	var said resource.CommandError

	return errors.As(err, &said) && strings.Contains(said.Output, "attempted too often")
}

// withLogs adds to each error the log of its service since a time, even after ctx has ended.
func withLogs(ctx context.Context, env resource.Env, names []string, since time.Time, errs []error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), logTime)
	defer cancel()
	// The newest entries may not be in the journal yet.
	if _, err := run(ctx, env, nil, "journalctl", "--sync"); err != nil {
		env.Log.DebugContext(ctx, "cannot read the journal", "error", err.Error())
		return
	}
	for i, name := range names {
		if errs[i] == nil {
			continue
		}
		logged, err := lastLogged(ctx, env, name, since)
		if err != nil || logged == "" {
			continue
		}
		var failure resource.CommandError
		if errors.As(errs[i], &failure) {
			errs[i] = resource.CommandError{Err: failure.Err, Output: failure.Output + "\n" + logged}
		} else {
			errs[i] = resource.CommandError{Err: errs[i], Output: logged}
		}
	}
}

// unreadable returns the error of a unit with a mistake in its file, with the log of systemd about it.
func (r *reader) unreadable(ctx context.Context, env resource.Env, name string, u unit) error {
	if target, err := os.Readlink(filepath.Join(r.root, etcUnits, u.id)); err == nil && strings.HasPrefix(u.unitFile, "masked") {
		unit := filepath.Base(target)
		return fmt.Errorf("%s is an alias of %s, which is masked: run systemctl unmask %s, and name the service %s", u.id, unit, unit, unit)
	}
	err := fmt.Errorf("%s: its unit cannot be read (%s): correct its file", name, u.load)
	if logged, failed := lastLogged(ctx, env, u.id, time.Unix(0, 0)); failed == nil && logged != "" {
		return resource.CommandError{Err: err, Output: logged}
	}

	return err
}

// lastLogged returns the last lines that a service logged since a time. journalctl limits lines only in
// reverse order, and reverses messages instead of lines, so each message is read separately. The
// option --unit misses messages of short-lived systemd processes, such as a process that finds no
// program to run.
func lastLogged(ctx context.Context, env resource.Env, name string, since time.Time) (string, error) {
	var messages []string
	onLine := func(line string, stderr bool) {
		if !stderr {
			messages = append(messages, message(line))
		}
	}
	unit := service.UnitName(name)
	_, err := run(ctx, env, onLine, "journalctl", "--quiet", "--no-pager", "--output=json", "--output-fields=MESSAGE", "--all", "--reverse",
		fmt.Sprintf("--lines=%d", logLines), fmt.Sprintf("--since=@%d.%06d", since.Unix(), since.Nanosecond()/1000),
		"_SYSTEMD_UNIT="+unit, "+", "_UID=0", "UNIT="+unit, "+", "_UID=0", "OBJECT_SYSTEMD_UNIT="+unit, "+", "_UID=0", "COREDUMP_UNIT="+unit)
	slices.Reverse(messages)

	return command.Output{Tail: []byte(strings.Join(messages, "\n"))}.LastLines(logLines), err
}

// message returns the message of a journal entry in JSON: a text, or bytes for
// other content.
func message(line string) string {
	var text struct{ MESSAGE string }
	if json.Unmarshal([]byte(line), &text) == nil {
		return text.MESSAGE
	}
	var binary struct{ MESSAGE []uint16 }
	if json.Unmarshal([]byte(line), &binary) != nil {
		return "(a message that cannot be read)"
	}
	bytes := make([]byte, len(binary.MESSAGE))
	for i, b := range binary.MESSAGE {
		bytes[i] = byte(b)
	}

	return strings.ToValidUTF8(string(bytes), "\uFFFD")
}

// enabledUnits is the folder of the records of the links that muster made for each unit.
const enabledUnits = "enabled"

// rememberLinks records the links of the [Install] sections of services that were just enabled.
func (p *Provider) rememberLinks(ctx context.Context, env resource.Env, names []string) {
	for _, unit := range unitNames(names) {
		i, ok := readInstall(p.reader.root, unit)
		if !ok {
			continue
		}
		if err := env.Host.Remember(ctx, enabledUnits, unit, i.links); err != nil && !errors.Is(err, state.ErrNone) {
			env.Log.WarnContext(ctx, "links of enabled unit not recorded", "unit", unit, "error", err)
		}
	}
}

// wasEnabled reports whether muster made any of the links of a unit.
func wasEnabled(env resource.Env, unit string, links []string) bool {
	if env.Host == nil || len(links) == 0 {
		return false
	}
	recorded, _, err := host.Recall[[]string](env.Host, enabledUnits, unit)

	return err == nil && slices.ContainsFunc(links, func(link string) bool { return slices.Contains(recorded, link) })
}

// transients is the folder of records of stopped units that existed only while they ran: transient
// units, and units with a removed file. A record distinguishes such a unit from a wrong name.
const transients = "transients"

// rememberTransient finds the units among services that exist only while they run. Call the
// returned function after the stop: it records the units that no longer exist.
func (p *Provider) rememberTransient(ctx context.Context, env resource.Env, names []string) func() {
	exists := func(unit string) bool {
		_, err := os.Lstat(filepath.Join(p.reader.root, "run/systemd/transient", unit))
		return err == nil
	}
	hasFile := func(unit string) bool {
		_, _, found := unitFile(p.reader.root, unit)
		return found
	}
	var units []string
	for _, unit := range unitNames(names) {
		if exists(unit) || !hasFile(unit) {
			units = append(units, unit)
		}
	}

	return func() {
		for _, unit := range units {
			if exists(unit) || hasFile(unit) {
				continue
			}
			if err := env.Host.Remember(ctx, transients, unit, true); err != nil && !errors.Is(err, state.ErrNone) {
				env.Log.WarnContext(ctx, "stopped transient unit not recorded", "unit", unit, "error", err)
			}
		}
	}
}

// wasTransient reports whether muster stopped a unit of this name that existed only while it ran.
func wasTransient(env resource.Env, unit string) bool {
	if env.Host == nil {
		return false
	}
	_, found, err := host.Recall[bool](env.Host, transients, unit)

	return err == nil && found
}
