package watch

import (
	"log/slog"
	"path/filepath"

	"github.com/musterfleet/muster/resources/host/units"
)

// Watcher watches points of this machine. It is safe for concurrent use. Make it
// with New, and close it.
type Watcher struct {
	files *files
	units *units.Watcher
}

// New returns a watcher. It takes nothing of the machine before the first Arm. The log gets
// what ends all watches; nil discards.
func New(log *slog.Logger) *Watcher {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}

	return &Watcher{files: newFiles(log), units: units.NewWatcher(log, "/")}
}

// Watch is a point that is watched. Close it.
type Watch interface {
	// Close ends the watch. It may be called more than once.
	Close()
	// Err returns why the point is not watched at the moment, although it was armed:
	// ErrLimit, ErrNone or ErrClosed. A call of wake tells when that changes. Meanwhile
	// whoever wants to know has to look at intervals.
	Err() error
	// Written reports whether the file at a path may have been written to where it is, and
	// not only have been replaced or got other attributes, since it was asked last. It is
	// set before wake is called.
	Written() bool
}

// Arm watches a point: whatever changes after it has returned calls wake, once or
// several times. wake is called from any goroutine, at the same time as the wakes of
// other watches; it must return soon, and may call Arm and Close of watches. It says only
// that somebody should look again. One that was under way may still return after the
// watch was closed.
//
// Errors are ErrLimit, ErrNone and ErrClosed, in a PointError: whoever wants to know has to look at
// intervals.
func (w *Watcher) Arm(p Point, wake func()) (Watch, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	x, err := w.arm(p, wake)
	if err != nil {
		return nil, &PointError{p, err} // and no interface around a nil pointer
	}

	return x, nil
}

func (w *Watcher) arm(p Point, wake func()) (Watch, error) {
	if p.Kind == Unit {
		return w.units.Arm(p.Name, wake)
	}
	p.Name = filepath.Clean(p.Name)

	return w.files.arm(p, wake)
}

// Close closes all watches and waits until no wake is under way. wake must not call it.
func (w *Watcher) Close() {
	w.files.close()
	w.units.Close()
}
