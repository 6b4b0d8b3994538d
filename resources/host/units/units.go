// Package units watches units of systemd by signals. It only reports that the caller should observe again,
// never the change itself.
package units

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
)

var (
	// ErrNone means that the unit cannot be watched on this machine, for example without systemd.
	ErrNone = errors.New("cannot be watched")
	// ErrClosed means that the watcher is closed.
	ErrClosed = errors.New("the watcher is closed")
)

// Watcher watches units over one connection to systemd, which stays open while any unit is watched. It is
// safe for concurrent use. Create it with NewWatcher and close it.
type Watcher struct {
	log  *slog.Logger
	root string
	// answerTime limits the wait for an answer of systemd.
	answerTime time.Duration
	// receiving is the goroutine that handles signals.
	receiving sync.WaitGroup

	mu     sync.Mutex
	closed bool
	// wanted are the units by object. A unit with an alias has two objects.
	wanted  map[dbus.ObjectPath]*unit
	watches map[*Watch][]dbus.ObjectPath
	// signals is the connection, nil for none. lost is the reason why there is none. end stops connecting; it
	// is nil while no goroutine connects.
	signals *signals
	lost    error
	end     context.CancelFunc
	// retry is the time when Arm may connect again. Otherwise a hanging systemd would block each Arm.
	retry time.Time
}

// unit is a watched unit.
type unit struct {
	// state is the last state from systemd, empty for none.
	state   string
	watches map[*Watch]struct{}
}

// Watch is a watched unit. Close it.
type Watch struct {
	units *Watcher
	name  string
	wake  func()
}

// Close ends the watch. It may be called more than once.
func (x *Watch) Close() { x.units.remove(x) }

// Err returns the reason why the unit is not watched at the moment: ErrNone or ErrClosed.
func (x *Watch) Err() error {
	x.units.mu.Lock()
	defer x.units.mu.Unlock()
	if x.units.closed {
		return ErrClosed
	}

	return x.units.lost
}

// Written returns false, because a unit is not a file.
func (x *Watch) Written() bool { return false }

// NewWatcher returns a watcher that uses the socket of systemd below root. It connects at the first Arm. It
// logs a lost connection.
func NewWatcher(log *slog.Logger, root string) *Watcher {
	return &Watcher{log: log, root: root, answerTime: answerTime, wanted: map[dbus.ObjectPath]*unit{}, watches: map[*Watch][]dbus.ObjectPath{}}
}

// Arm watches a unit by its full name. Each change after Arm returns causes at least one call of wake from
// another goroutine. wake may call Arm and Close of watches. The error is ErrNone or ErrClosed.
func (u *Watcher) Arm(name string, wake func()) (*Watch, error) {
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
	// systemd may load a unit for this name later.
	objects, err := u.signals.objects(context.Background(), name)
	if err == errLate {
		u.lose()
		return nil, u.lost
	}
	x := &Watch{units: u, name: name, wake: wake}
	u.setObjects(x, objects)

	return x, nil
}

func (u *Watcher) start() error {
	ctx, end := context.WithCancel(context.Background())
	s, err := connect(ctx, u.root, u.answerTime)
	if err != nil {
		end()
		return err
	}
	u.signals, u.lost, u.end = s, nil, end
	u.receiving.Go(func() { u.receive(ctx, s) })

	return nil
}

// fail records the reason why there is no connection and no attempt to connect.
func (u *Watcher) fail(err error) {
	u.lost, u.retry = err, time.Now().Add(retryAfter)
}

// lose closes the connection because systemd does not answer on it.
func (u *Watcher) lose() {
	err := fmt.Errorf("%w: %w", ErrNone, errLate)
	u.signals.end()
	if len(u.watches) > 0 {
		u.lost = err // receive connects again and wakes all watches
		return
	}
	u.stop()
	u.fail(err)
}

func (u *Watcher) setObjects(x *Watch, objects []dbus.ObjectPath) {
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

// remove ends a watch. After the last watch it closes the connection.
func (u *Watcher) remove(x *Watch) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, armed := u.watches[x]; !armed {
		return
	}
	u.setObjects(x, nil)
	if delete(u.watches, x); len(u.watches) == 0 {
		u.stop()
	}
}

func (u *Watcher) stop() {
	if u.end != nil {
		u.end()
	}
	u.signals, u.lost, u.end = nil, nil, nil
}

// Close closes all watches and waits for running wakes. wake must not call it.
func (u *Watcher) Close() {
	u.mu.Lock()
	u.closed = true
	u.stop()
	u.mu.Unlock()
	u.receiving.Wait()
}

// Delays before the next attempt to connect. The first is long enough for a restart of systemd. If no unit is
// watched and the first Arm fails, the next attempt is after retryAfter.
const (
	firstWait  = 100 * time.Millisecond
	lastWait   = 30 * time.Second
	retryAfter = time.Minute
)

// receive handles signals until ctx ends. If the connection ends before, it wakes all watches when a new
// connection is ready and when connecting fails.
func (u *Watcher) receive(ctx context.Context, s *signals) {
	wait, connected := firstWait, true
	for {
		began := time.Now()
		if s != nil {
			for signal := range s.arrive {
				u.handleSignal(ctx, s, signal)
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
			u.log.Warn("units are not watched, cannot reach systemd", "error", err)
		}
		if err == nil || connected {
			u.wakeAll(ctx, s)
		}
		connected = err == nil
	}
}

// connected records a connection, or the reason why there is none.
func (u *Watcher) connected(ctx context.Context, s *signals, err error) {
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

// wakeAll resolves the names again and wakes all watches.
func (u *Watcher) wakeAll(ctx context.Context, s *signals) {
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

// resolve looks up the unit of a name again. It returns false if systemd does not answer.
func (u *Watcher) resolve(ctx context.Context, s *signals, x *Watch) bool {
	objects, err := s.objects(ctx, x.name)
	u.mu.Lock()
	defer u.mu.Unlock()
	_, armed := u.watches[x]
	switch {
	case ctx.Err() != nil:
	case err == errLate:
		u.lose()
		return false
	case armed && err == nil:
		u.setObjects(x, objects)
	}

	return true
}

// handleSignal wakes the watches that a signal concerns. Signals of loaded and unloaded units are no changes:
// systemd loads a unit for a request and unloads it afterwards.
func (u *Watcher) handleSignal(ctx context.Context, s *signals, signal *dbus.Signal) {
	switch signal.Name {
	case "org.freedesktop.DBus.Properties.PropertiesChanged":
		for _, x := range u.changed(signal) {
			x.wake()
		}
	case ManagerInterface + ".UnitFilesChanged":
		u.wakeAll(ctx, s)
	case ManagerInterface + ".Reloading":
		if len(signal.Body) == 1 && signal.Body[0] == false {
			u.wakeAll(ctx, s)
		}
	}
}

// changed returns the watches that a changed state concerns.
func (u *Watcher) changed(signal *dbus.Signal) []*Watch {
	u.mu.Lock()
	defer u.mu.Unlock()
	at := u.wanted[signal.Path]
	if at == nil || len(signal.Body) < 2 || signal.Body[0] != UnitInterface {
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
