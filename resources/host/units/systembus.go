package units

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	systemd "github.com/coreos/go-systemd/v22/dbus"
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

// signals is a connection to systemd with its signals.
type signals struct {
	conn   *dbus.Conn
	arrive chan *dbus.Signal
	end    context.CancelFunc
	// answerTime limits the wait for an answer.
	answerTime time.Duration
}

// answerTime limits the wait for an answer of systemd.
const answerTime = 5 * time.Second

// errLate means that systemd hangs or is overloaded.
var errLate = errors.New("systemd did not answer in time")

// connect connects to systemd and subscribes to its signals until ctx ends. The error is ErrNone.
func connect(ctx context.Context, root string, answerTime time.Duration) (*signals, error) {
	ctx, end := context.WithCancel(ctx)
	late := time.AfterFunc(answerTime, end)
	defer late.Stop()
	s := &signals{arrive: make(chan *dbus.Signal), end: end, answerTime: answerTime}
	var err error
	if s.conn, err = Connect(ctx, root, dbus.WithSignalHandler(dbus.NewSequentialSignalHandler())); err == nil {
		s.conn.Signal(s.arrive)
		err = s.subscribe(ctx)
	}
	if err == nil && !late.Stop() {
		err = errLate
	}
	if err != nil {
		end()
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}

	return s, nil
}

// subscribe subscribes to signals. Over its private socket, systemd sends signals to each client that it
// knows to be ready. Over the bus, it sends them on request and with match rules. Only the bus has names.
func (s *signals) subscribe(ctx context.Context) error {
	manager := s.conn.Object(BusName, ManagerPath)
	if slices.Contains(s.conn.Names(), "") {
		return manager.CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, ManagerInterface, "Version").Err
	}

	return errors.Join(
		s.conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(BusName), dbus.WithMatchInterface("org.freedesktop.DBus.Properties"),
			dbus.WithMatchPathNamespace("/org/freedesktop/systemd1/unit"), dbus.WithMatchArg(0, UnitInterface)),
		s.conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(BusName), dbus.WithMatchInterface(ManagerInterface)),
		manager.CallWithContext(ctx, ManagerInterface+".Subscribe", 0).Err,
	)
}

// objects returns the objects of a unit name: its own object, and for an alias the object of the unit, which
// systemd uses in signals. The error may be errLate.
func (s *signals) objects(ctx context.Context, name string) ([]dbus.ObjectPath, error) {
	ctx, cancel := context.WithTimeout(ctx, s.answerTime)
	defer cancel()
	out := []dbus.ObjectPath{ObjectPath(name)}
	var id dbus.Variant
	err := s.conn.Object(BusName, out[0]).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, UnitInterface, "Id").Store(&id)
	if unit, ok := id.Value().(string); ok && unit != name {
		out = append(out, ObjectPath(unit))
	}
	if ctx.Err() == context.DeadlineExceeded {
		err = errLate
	}

	return out, err
}

// ObjectPath returns the object path of a unit.
func ObjectPath(unit string) dbus.ObjectPath {
	return dbus.ObjectPath(UnitPath + systemd.PathBusEscape(unit))
}
