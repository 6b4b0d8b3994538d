package systemd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/musterfleet/muster/resources/host/units"
	"github.com/musterfleet/muster/resources/resource"
)

const (
	// inFlight is how many calls wait for their replies; dbus-daemon allows 128.
	inFlight = 64
	// busTimeout leaves most of answerTimeout to systemctl.
	busTimeout = answerTimeout / 4
)

var errReply = errors.New("invalid reply of systemd")

// bus reads units over D-Bus, with a connection for each question.
type bus struct {
	root string
	// timeout limits the query, so that systemctl has time for it afterwards.
	timeout time.Duration
}

// String returns the name for logs.
func (bus) String() string { return "D-Bus" }

// units gets all properties of each unit in one call: systemd unloads an unused unit after each call, so
// calls for single properties would load it repeatedly.
func (b bus) units(ctx context.Context, _ resource.Env, names []string) ([]unit, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.timeout, fmt.Errorf("no reply within %s", b.timeout))
	defer cancel()
	conn, err := units.Connect(ctx, b.root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	found, calls := make([]unit, len(names)), make([]*dbus.Call, len(names))
	for i := range len(names) + inFlight {
		if i < len(names) {
			calls[i] = conn.Object(units.BusName, units.ObjectPath(names[i])).
				GoWithContext(ctx, "org.freedesktop.DBus.Properties.GetAll", 0, nil, units.UnitInterface)
		}
		at := i - inFlight
		if at < 0 || at >= len(names) {
			continue
		}
		if found[at], err = unitOf(<-calls[at].Done); err != nil {
			return nil, fmt.Errorf("reading %s over D-Bus: %w", names[at], units.CauseOf(ctx, err))
		}
	}

	return found, nil
}

func unitOf(call *dbus.Call) (u unit, err error) {
	if call.Err != nil {
		return u, call.Err
	}
	var properties map[string]dbus.Variant
	if len(call.Body) == 1 {
		properties, _ = call.Body[0].(map[string]dbus.Variant)
	}
	var since uint64
	err = errors.Join(
		property(properties, "Id", &u.id), property(properties, "LoadState", &u.load),
		property(properties, "ActiveState", &u.active), property(properties, "UnitFileState", &u.unitFile),
		property(properties, "NeedDaemonReload", &u.needReload), property(properties, "CanReload", &u.canReload),
		property(properties, "ActiveEnterTimestampMonotonic", &since),
	)
	u.perpetual, _ = properties["Perpetual"].Value().(bool)
	// The property Job is a number, 0 for none, and a path.
	job, _ := properties["Job"].Value().([]any)
	u.job = len(job) > 0 && job[0] != uint32(0)
	u.activeSince = time.Duration(since) * time.Microsecond

	return u, err
}

// property reads one property into a value of its type.
func property[T any](properties map[string]dbus.Variant, name string, value *T) error {
	found, ok := properties[name].Value().(T)
	if !ok {
		return fmt.Errorf("%w: %s is %#v", errReply, name, properties[name].Value())
	}
	*value = found

	return nil
}

// showCommand reads units with systemctl show.
type showCommand struct{}

// String returns the name for logs.
func (showCommand) String() string { return "systemctl show" }

func (showCommand) units(ctx context.Context, env resource.Env, names []string) ([]unit, error) {
	var p parser
	onLine := func(line string, stderr bool) {
		if !stderr {
			p.line(line)
		}
	}
	result, err := run(ctx, env, onLine, append([]string{systemctl, "show", "--system", "--property=" + properties, "--"}, names...)...)
	if err != nil {
		return nil, err
	}
	if result.ExitCode != 0 || len(p.units) != len(names) {
		said := strings.ToValidUTF8(result.Stderr.LastLines(logLines), "\uFFFD")
		return nil, fmt.Errorf("%s show answered for %d of %d services (exit code %d): %s", systemctl, len(p.units), len(names), result.ExitCode, said)
	}

	return p.units, nil
}

// properties are the properties that muster reads.
const properties = "Id,LoadState,ActiveState,ActiveEnterTimestampMonotonic,UnitFileState,NeedDaemonReload,CanReload,Job,Perpetual"

// unit is a unit in the memory of systemd.
type unit struct {
	id, load, active, unitFile string
	needReload, canReload      bool
	// perpetual marks a unit without a file that always exists, such as -.mount.
	perpetual bool
	// job reports that systemd has a job for it: to start, stop, restart or reload it.
	job bool
	// activeSince is the time since boot when the unit last became active.
	activeSince time.Duration
}

// parser reads the output of systemctl show: key=value lines, with an empty
// line between units.
type parser struct {
	units []unit
	open  bool
}

func (p *parser) line(line string) {
	if line == "" {
		p.open = false
		return
	}
	if !p.open {
		p.units = append(p.units, unit{})
		p.open = true
	}
	u := &p.units[len(p.units)-1]
	switch key, value, _ := strings.Cut(line, "="); key {
	case "Id":
		u.id = value
	case "LoadState":
		u.load = value
	case "ActiveState":
		u.active = value
	case "ActiveEnterTimestampMonotonic":
		if at, err := strconv.ParseInt(value, 10, 64); err == nil {
			u.activeSince = time.Duration(at) * time.Microsecond
		}
	case "UnitFileState":
		u.unitFile = value
	case "NeedDaemonReload":
		u.needReload = value == "yes"
	case "Job":
		u.job = value != "" && value != "0"
	case "Perpetual":
		u.perpetual = value == "yes"
	case "CanReload":
		u.canReload = value == "yes"
	}
}

// isEnabled returns the answer of systemctl is-enabled for a unit, and whether it is certain: systemd
// remembers how a unit was enabled when it read the unit, but is-enabled reads the links. For an init
// script, is-enabled has another answer.
func (u unit) isEnabled(links links, script bool) (answer string, sure bool) {
	_, masked := links.masked[u.id]
	_, linked := links.enabling[u.id]
	switch answer = u.unitFile; {
	case answer == "" && u.perpetual:
		return perpetual, true
	case u.load == notFound || answer == "":
		return notFound, !script
	case answer == "bad": // the file is gone, and systemd did not notice it yet
		return answer, false
	case answer == "generated":
		return answer, !script
	case strings.HasPrefix(answer, "masked"):
		return answer, masked
	case answer == "transient":
		return answer, true
	default:
		return answer, !masked && linked == strings.HasPrefix(answer, "enabled")
	}
}
