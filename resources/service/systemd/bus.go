package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/musterfleet/muster/resources/resource"
)

const (
	busName       = "org.freedesktop.systemd1"
	unitInterface = "org.freedesktop.systemd1.Unit"
	unitPath      = "/org/freedesktop/systemd1/unit/"
	// inFlight is how many calls wait for their replies; dbus-daemon allows 128.
	inFlight = 64
	// busTimeout is part of answerTimeout.
	busTimeout = answerTimeout / 4
)

var (
	errOffline = errors.New("this is a chroot, or systemd is offline")
	errReply   = errors.New("invalid reply of systemd")
)

// bus reads units over D-Bus, with a connection for each question.
type bus struct {
	root string
	// timeout bounds the question, so that systemctl has time to answer it.
	timeout time.Duration
}

// String is what logs name it.
func (bus) String() string { return "D-Bus" }

// units asks for all properties of each unit at once: systemd drops an unused
// unit after each call, so asking for single ones would load it again and again.
func (b bus) units(ctx context.Context, _ resource.Env, names []string) ([]unit, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.timeout, fmt.Errorf("no reply within %s", b.timeout))
	defer cancel()
	conn, err := b.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	units, calls := make([]unit, len(names)), make([]*dbus.Call, len(names))
	for i := range len(names) + inFlight {
		if i < len(names) {
			calls[i] = conn.Object(busName, objectPath(names[i])).
				GoWithContext(ctx, "org.freedesktop.DBus.Properties.GetAll", 0, nil, unitInterface)
		}
		at := i - inFlight
		if at < 0 || at >= len(names) {
			continue
		}
		if units[at], err = unitOf(<-calls[at].Done); err != nil {
			return nil, fmt.Errorf("reading %s over D-Bus: %w", names[at], becauseOf(ctx, err))
		}
	}

	return units, nil
}

// connect connects to systemd's own socket as root, which works without
// dbus-daemon, and to the system bus as anyone else. It closes the connection
// when ctx ends. In a chroot it refuses, as systemctl does: the systemd that
// would answer manages other units.
func (b bus) connect(ctx context.Context) (*dbus.Conn, error) {
	if isChroot(b.root) || os.Getenv("SYSTEMD_OFFLINE") != "" {
		return nil, errOffline
	}
	auth := dbus.AuthExternal(strconv.Itoa(os.Geteuid()))
	if os.Geteuid() != 0 {
		conn, err := dbus.ConnectSystemBus(dbus.WithContext(ctx), dbus.WithAuth(auth))
		return conn, becauseOf(ctx, err)
	}
	conn, err := dbus.Dial("unix:path="+dbus.EscapeBusAddressValue(filepath.Join(b.root, "run/systemd/private")), dbus.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	if err := conn.Auth([]dbus.Auth{auth}); err != nil {
		_ = conn.Close()
		return nil, becauseOf(ctx, err)
	}

	return conn, nil
}

// becauseOf returns why ctx ended instead of an error that this caused.
func becauseOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}

	return err
}

// isChroot reports whether the first process has another root.
func isChroot(root string) bool {
	first, err := os.Stat(filepath.Join(root, "proc/1/root"))
	if err != nil {
		return false
	}
	own, err := os.Stat(root)

	return err == nil && !os.SameFile(first, own)
}

// objectPath returns the object of a unit: other characters than letters and
// digits are escaped, and a leading digit.
func objectPath(unit string) dbus.ObjectPath {
	var b strings.Builder
	b.WriteString(unitPath)
	for i, c := range []byte(unit) {
		letter, digit := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z', c >= '0' && c <= '9'
		if letter || digit && i > 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02x", c)
		}
	}

	return dbus.ObjectPath(b.String())
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
