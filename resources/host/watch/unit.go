package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/musterfleet/muster/resources/host/systembus"
)

// units watches units by the signals of systemd, over one connection that is kept while
// anybody wants one of them. One goroutine takes the signals.
type units struct {
	log  *slog.Logger
	root string
	// answerTime bounds the wait for an answer of systemd.
	answerTime time.Duration
	following  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	// wanted are the units by their objects; one with an alias has two.
	wanted  map[dbus.ObjectPath]*unit
	watches map[*Watch][]dbus.ObjectPath
	// signals are the connection, nil for none, lost is why there is none at the moment,
	// and end gives up; nil while nobody tries to connect.
	signals *signals
	lost    error
	end     context.CancelFunc
	// retry is when arm connects again. A systemd that hangs would hold up each arm.
	retry time.Time
}

// unit is a unit that is watched.
type unit struct {
	// state is the one that systemd told last, empty for none.
	state   string
	watches map[*Watch]struct{}
}

func newUnits(log *slog.Logger, root string) *units {
	return &units{log: log, root: root, answerTime: answerTime, wanted: map[dbus.ObjectPath]*unit{}, watches: map[*Watch][]dbus.ObjectPath{}}
}

func (u *units) arm(p Point, wake func()) (*Watch, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.closed:
		return nil, ErrClosed
	case u.lost != nil && (u.end != nil || time.Now().Before(u.retry)):
		return nil, u.lost
	case u.signals == nil:
		if err := u.start(); err != nil {
			u.fail(err)
			return nil, err
		}
	}
	// A name that systemd has nothing to say about may get a unit later.
	objects, err := u.signals.objects(context.Background(), p.Name)
	if err == errLate {
		u.lose()
		return nil, u.lost
	}
	x := &Watch{point: p, wake: wake}
	x.close = func() { u.remove(x) }
	x.err = func() error {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.closed {
			return ErrClosed
		}
		return u.lost
	}
	u.want(x, objects)

	return x, nil
}

// start connects for the first watch.
func (u *units) start() error {
	ctx, end := context.WithCancel(context.Background())
	s, err := connect(ctx, u.root, u.answerTime)
	if err != nil {
		end()
		return err
	}
	u.signals, u.lost, u.end = s, nil, end
	u.following.Go(func() { u.follow(ctx, s) })

	return nil
}

// fail remembers why there is no connection, and that nobody tries to make one.
func (u *units) fail(err error) {
	u.lost, u.retry = err, time.Now().Add(retryAfter)
}

// lose gives up the connection, because systemd does not answer on it.
func (u *units) lose() {
	err := fmt.Errorf("%w: %w", ErrNone, errLate)
	u.signals.end()
	if len(u.watches) > 0 {
		u.lost = err // follow connects again, and wakes everybody
		return
	}
	u.stop()
	u.fail(err)
}

// want makes objects those of a watch.
func (u *units) want(x *Watch, objects []dbus.ObjectPath) {
	for _, object := range u.watches[x] {
		if at := u.wanted[object]; !slices.Contains(objects, object) {
			if delete(at.watches, x); len(at.watches) == 0 {
				delete(u.wanted, object)
			}
		}
	}
	for _, object := range objects {
		if u.wanted[object] == nil {
			u.wanted[object] = &unit{watches: map[*Watch]struct{}{}}
		}
		u.wanted[object].watches[x] = struct{}{}
	}
	u.watches[x] = objects
}

// remove ends a watch, and with the last the connection.
func (u *units) remove(x *Watch) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, armed := u.watches[x]; !armed {
		return
	}
	u.want(x, nil)
	if delete(u.watches, x); len(u.watches) == 0 {
		u.stop()
	}
}

func (u *units) stop() {
	if u.end != nil {
		u.end()
	}
	u.signals, u.lost, u.end = nil, nil, nil
}

func (u *units) close() {
	u.mu.Lock()
	u.closed = true
	u.stop()
	u.mu.Unlock()
	u.following.Wait()
}

func (u *units) stats() Stats {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := Stats{Points: len(u.watches)}
	for x := range u.watches {
		if u.lost != nil {
			out.Fallbacks = append(out.Fallbacks, Fallback{x.point, u.lost})
		}
	}

	return out
}

// The waits before another try to connect: the first is long enough for a systemd that
// starts itself again.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 30 * time.Second
)

// follow takes the signals until ctx ends. Where the connection ends before, everybody
// is woken once there is another, and once there is none.
func (u *units) follow(ctx context.Context, s *signals) {
	wait, connected := firstWait, true
	for {
		began := time.Now()
		if s != nil {
			for signal := range s.arrive {
				u.take(ctx, s, signal)
			}
			s.end()
		}
		if time.Since(began) > lastWait {
			wait = firstWait
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			wait = min(2*wait, lastWait)
		}
		var err error
		s, err = connect(ctx, u.root, u.answerTime)
		if ctx.Err() != nil {
			continue
		}
		u.connected(ctx, s, err)
		if err != nil && connected {
			u.log.Warn("units are not watched, systemd is not reached", "error", err)
		}
		if err == nil || connected {
			u.wakeAll(ctx, s)
		}
		connected = err == nil
	}
}

// connected records a connection, or why there is none.
func (u *units) connected(ctx context.Context, s *signals, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	u.signals, u.lost = s, err
	for _, at := range u.wanted {
		at.state = ""
	}
}

// wakeAll wakes everybody, after the names were resolved again.
func (u *units) wakeAll(ctx context.Context, s *signals) {
	u.mu.Lock()
	all := slices.Collect(maps.Keys(u.watches))
	u.mu.Unlock()
	for _, x := range all {
		if s != nil && !u.resolve(ctx, s, x) {
			s = nil
		}
		x.wake()
	}
}

// resolve looks for the unit of a name again. It returns false when systemd does not
// answer.
func (u *units) resolve(ctx context.Context, s *signals, x *Watch) bool {
	objects, err := s.objects(ctx, x.point.Name)
	u.mu.Lock()
	defer u.mu.Unlock()
	_, armed := u.watches[x]
	switch {
	case ctx.Err() != nil:
	case err == errLate:
		u.lose()
		return false
	case armed && err == nil:
		u.want(x, objects)
	}

	return true
}

// take handles a signal. Signals of units that come and go are no change: systemd
// loads a unit when it is asked for it, and forgets it afterwards.
func (u *units) take(ctx context.Context, s *signals, signal *dbus.Signal) {
	switch signal.Name {
	case "org.freedesktop.DBus.Properties.PropertiesChanged":
		for _, x := range u.changed(signal) {
			x.wake()
		}
	case systembus.Manager + ".UnitFilesChanged":
		u.wakeAll(ctx, s)
	case systembus.Manager + ".Reloading":
		if len(signal.Body) == 1 && signal.Body[0] == false {
			u.wakeAll(ctx, s)
		}
	}
}

// changed returns who wants to know of a change of properties: that of a state.
func (u *units) changed(signal *dbus.Signal) []*Watch {
	u.mu.Lock()
	defer u.mu.Unlock()
	at := u.wanted[signal.Path]
	if at == nil || len(signal.Body) < 2 || signal.Body[0] != systembus.Unit {
		return nil
	}
	properties, _ := signal.Body[1].(map[string]dbus.Variant)
	active, known := properties["ActiveState"].Value().(string)
	sub, _ := properties["SubState"].Value().(string)
	state := active + "/" + sub
	if !known || state == at.state {
		return nil
	}
	at.state = state

	return slices.Collect(maps.Keys(at.watches))
}

// signals is a connection to systemd, and what it says by itself.
type signals struct {
	conn   *dbus.Conn
	arrive chan *dbus.Signal
	end    context.CancelFunc
	// answerTime bounds the wait for an answer.
	answerTime time.Duration
}

// answerTime bounds the wait for an answer of systemd.
const answerTime = 5 * time.Second

// errLate is a systemd that hangs, or has too much to do.
var errLate = errors.New("no answer of systemd in time")

// connect connects to systemd and has it send its signals, until ctx ends. Its error
// is ErrNone.
func connect(ctx context.Context, root string, answerTime time.Duration) (*signals, error) {
	ctx, end := context.WithCancel(ctx)
	late := time.AfterFunc(answerTime, end)
	defer late.Stop()
	s := &signals{arrive: make(chan *dbus.Signal), end: end, answerTime: answerTime}
	var err error
	if s.conn, err = systembus.Connect(ctx, root, dbus.WithSignalHandler(dbus.NewSequentialSignalHandler())); err == nil {
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

// subscribe has signals sent. systemd sends them by itself to those who are connected
// to its own socket, once it has seen that they are ready; to those on the bus when they
// ask, and with matches. There is no name but on the bus.
func (s *signals) subscribe(ctx context.Context) error {
	manager := s.conn.Object(systembus.Name, systembus.ManagerPath)
	if slices.Contains(s.conn.Names(), "") {
		return manager.CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, systembus.Manager, "Version").Err
	}

	return errors.Join(
		s.conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(systembus.Name), dbus.WithMatchInterface("org.freedesktop.DBus.Properties"),
			dbus.WithMatchPathNamespace("/org/freedesktop/systemd1/unit"), dbus.WithMatchArg(0, systembus.Unit)),
		s.conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(systembus.Name), dbus.WithMatchInterface(systembus.Manager)),
		manager.CallWithContext(ctx, systembus.Manager+".Subscribe", 0).Err,
	)
}

// objects returns the objects of a unit: that of its name, and where that is an alias
// that of the unit, by which systemd tells of it. The error may be errLate.
func (s *signals) objects(ctx context.Context, name string) ([]dbus.ObjectPath, error) {
	ctx, cancel := context.WithTimeout(ctx, s.answerTime)
	defer cancel()
	out := []dbus.ObjectPath{systembus.ObjectPath(name)}
	var id dbus.Variant
	err := s.conn.Object(systembus.Name, out[0]).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, systembus.Unit, "Id").Store(&id)
	if unit, ok := id.Value().(string); ok && unit != name {
		out = append(out, systembus.ObjectPath(unit))
	}
	if ctx.Err() == context.DeadlineExceeded {
		err = errLate
	}

	return out, err
}
