// Package units watches units of systemd by its signals. It never says what changed, only
// that somebody should look again.
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
	// ErrNone is something that cannot be watched on this machine, such as a unit where no
	// systemd can be reached.
	ErrNone = errors.New("cannot be watched")
	// ErrClosed is a watcher that was closed.
	ErrClosed = errors.New("the watcher is closed")
)

// Watcher watches units over one connection to systemd, which is kept while anybody wants one
// of them. It is safe for concurrent use. Make it with New, and close it.
type Watcher struct {
	log  *slog.Logger
	root string
	// answerTime bounds the wait for an answer of systemd.
	answerTime time.Duration
	// receiving is the goroutine that handles signals.
	receiving sync.WaitGroup

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
	// retry is when Arm connects again. A systemd that hangs would hold up each of them.
	retry time.Time
}

// unit is a unit that is watched.
type unit struct {
	// state is the one that systemd told last, empty for none.
	state   string
	watches map[*Watch]struct{}
}

// Watch is a unit that is watched. Close it.
type Watch struct {
	units *Watcher
	name  string
	wake  func()
}

// Close ends the watch. It may be called more than once.
func (x *Watch) Close() { x.units.remove(x) }

// Err returns why the unit is not watched at the moment: ErrNone or ErrClosed.
func (x *Watch) Err() error {
	x.units.mu.Lock()
	defer x.units.mu.Unlock()
	if x.units.closed {
		return ErrClosed
	}

	return x.units.lost
}

// Written is false: a unit is no file.
func (x *Watch) Written() bool { return false }

// NewWatcher returns a watcher that looks for the socket of systemd below root. It connects when
// the first unit is armed. The log gets that there is no connection any more.
func NewWatcher(log *slog.Logger, root string) *Watcher {
	return &Watcher{log: log, root: root, answerTime: answerTime, wanted: map[dbus.ObjectPath]*unit{}, watches: map[*Watch][]dbus.ObjectPath{}}
}

// Arm watches a unit by its full name: whatever changes after it has returned calls wake, once or
// several times, from another goroutine. wake may call Arm and Close of watches. The error is
// ErrNone or ErrClosed.
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
	// A name that systemd has nothing to say about may get a unit later.
	objects, err := u.signals.objects(context.Background(), name)
	if err == errLate {
		u.lose()
		return nil, u.lost
	}
	x := &Watch{units: u, name: name, wake: wake}
	u.setObjects(x, objects)

	return x, nil
}

// start connects for the first watch.
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

// fail remembers why there is no connection, and that nobody tries to make one.
func (u *Watcher) fail(err error) {
	u.lost, u.retry = err, time.Now().Add(retryAfter)
}

// lose gives up the connection, because systemd does not answer on it.
func (u *Watcher) lose() {
	err := fmt.Errorf("%w: %w", ErrNone, errLate)
	u.signals.end()
	if len(u.watches) > 0 {
		u.lost = err // receive connects again, and wakes everybody
		return
	}
	u.stop()
	u.fail(err)
}

// setObjects makes objects those of a watch.
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

// remove ends a watch, and with the last the connection.
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

// Close closes all watches and waits until no wake is under way. wake must not call it.
func (u *Watcher) Close() {
	u.mu.Lock()
	u.closed = true
	u.stop()
	u.mu.Unlock()
	u.receiving.Wait()
}

// The waits before another try to connect: the first is long enough for a systemd that
// starts itself again. Where nobody watches a unit, and the first who wants to cannot, the
// next try is after retryAfter.
const (
	firstWait  = 100 * time.Millisecond
	lastWait   = 30 * time.Second
	retryAfter = time.Minute
)

// receive handles the signals until ctx ends. Where the connection ends before, everybody
// is woken once there is another, and once there is none.
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
			u.log.Warn("units are not watched, systemd is not reached", "error", err)
		}
		if err == nil || connected {
			u.wakeAll(ctx, s)
		}
		connected = err == nil
	}
}

// connected records a connection, or why there is none.
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

// wakeAll wakes everybody, after the names were resolved again.
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

// resolve looks for the unit of a name again. It returns false when systemd does not
// answer.
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

// handleSignal wakes who is concerned by a signal. Signals of units that come and go are no change: systemd
// loads a unit when it is asked for it, and forgets it afterwards.
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

// changed returns who wants to know of a change of properties: that of a state.
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
