package systemd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/musterfleet/muster/resources/host/units"
	"github.com/musterfleet/muster/resources/resource"
)

const (
	// inFlight is how many calls wait for their replies; dbus-daemon allows 128.
	inFlight = 64
	// busTimeout is part of answerTimeout.
	busTimeout = answerTimeout / 4
)

var (
	errReply = errors.New("invalid reply of systemd")
)

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

// unitOf returns the unit of a reply.
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
	u.job = hasJob(properties["Job"])
	u.activeSince = time.Duration(since) * time.Microsecond

	return u, err
}

// hasJob reports whether the property Job, a number and a path, names a job.
func hasJob(property dbus.Variant) bool {
	job, _ := property.Value().([]any)
	if len(job) == 0 {
		return false
	}
	number, _ := job[0].(uint32)

	return number != 0
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
