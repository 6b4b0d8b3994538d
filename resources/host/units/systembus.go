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
	// UnitPath is where the objects of units are.
	UnitPath = "/org/freedesktop/systemd1/unit/"
	// ManagerInterface is the interface of systemd itself.
	ManagerInterface = "org.freedesktop.systemd1.Manager"
	// ManagerPath is the object of systemd itself.
	ManagerPath dbus.ObjectPath = "/org/freedesktop/systemd1"
)

// ErrOffline is a systemd that manages other units than those of this machine.
var ErrOffline = errors.New("this is a chroot, or systemd is offline")

// Connect connects to systemd's own socket as root, which works without
// dbus-daemon, and to the system bus as anyone else. root is where the socket is looked
// for. It closes the connection when ctx ends. In a chroot it refuses, as systemctl
// does, by ErrOffline: the systemd that would answer manages other units.
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

// CauseOf returns why ctx ended instead of an error that this caused.
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

// ObjectPath returns the object of a unit: other characters than letters and
// digits are escaped, and a leading digit.
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
