package units

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/godbus/dbus/v5"
)

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
