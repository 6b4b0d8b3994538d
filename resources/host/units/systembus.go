package units

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/godbus/dbus/v5"
)

const (
	// BusName is the name of systemd on the bus.
	BusName = "org.freedesktop.systemd1"
	// UnitInterface is the interface of all units.
	UnitInterface = "org.freedesktop.systemd1.Unit"
	// UnitPath is the prefix of the object paths of units.
	UnitPath = "/org/freedesktop/systemd1/unit/"
	// ManagerInterface is the interface of systemd itself.
	ManagerInterface = "org.freedesktop.systemd1.Manager"
	// ManagerPath is the object path of systemd itself.
	ManagerPath dbus.ObjectPath = "/org/freedesktop/systemd1"
)

// ErrOffline is returned if the reachable systemd does not manage the units of this root.
var ErrOffline = errors.New("this is a chroot, or systemd is offline")

// Connect connects to systemd: as root through its private socket below root, which works without
// dbus-daemon, and as another user through the system bus. It closes the connection when ctx ends.
// In a chroot it returns ErrOffline, as systemctl does, because the systemd that would answer
// manages other units.
func Connect(ctx context.Context, root string, options ...dbus.ConnOption) (*dbus.Conn, error) {
	if IsOffline(root) {
		return nil, ErrOffline
	}
	auth := dbus.AuthExternal(strconv.Itoa(os.Geteuid()))
	if os.Geteuid() != 0 {
		conn, err := dbus.ConnectSystemBus(append(options, dbus.WithContext(ctx), dbus.WithAuth(auth))...)
		return conn, CauseOf(ctx, err)
	}
	conn, err := dbus.Dial("unix:path="+dbus.EscapeBusAddressValue(filepath.Join(root, "run/systemd/private")), append(options, dbus.WithContext(ctx))...)
	if err != nil {
		return nil, err
	}
	if err := conn.Auth([]dbus.Auth{auth}); err != nil {
		_ = conn.Close()
		return nil, CauseOf(ctx, err)
	}

	return conn, nil
}

// CauseOf returns the cause of a context that has ended, in place of the resulting error.
func CauseOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}

	return err
}

// IsOffline reports whether systemd is offline or manages the units of another root.
func IsOffline(root string) bool { return isChroot(root) || os.Getenv("SYSTEMD_OFFLINE") != "" }

// isChroot reports whether the first process has another root.
func isChroot(root string) bool {
	first, err := os.Stat(filepath.Join(root, "proc/1/root"))
	if err != nil {
		return false
	}
	own, err := os.Stat(root)

	return err == nil && !os.SameFile(first, own)
}

// ObjectPath returns the object path of a unit. It escapes a leading digit and all characters that
// are not letters or digits.
func ObjectPath(unit string) dbus.ObjectPath {
	var b strings.Builder
	b.WriteString(UnitPath)
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
