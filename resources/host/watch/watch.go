package watch

import (
	"log/slog"
	"path/filepath"

	"github.com/musterfleet/muster/resources/host/units"
)

// Watcher watches points of this machine. It is safe for concurrent use. Create it with New and close it.
type Watcher struct {
	files *files
	units *units.Watcher
}

// New returns a watcher. It uses no kernel resources before the first Arm. It logs errors that end all
// watches; nil discards them.
func New(log *slog.Logger) *Watcher {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}

	return &Watcher{files: newFiles(log), units: units.NewWatcher(log, "/")}
}

// Watch is a watched point. Close it.
type Watch interface {
	// Close ends the watch. It may be called more than once.
	Close()
	// Err returns the reason why the armed point is not watched at the moment: ErrLimit, ErrNone or
	// ErrClosed. The watcher calls wake when this changes. Until then the caller must poll.
	Err() error
	// Written reports whether the file at a path may have been written in place since the last call, and not
	// only replaced or changed in its attributes. It is set before wake is called.
	Written() bool
}

// Arm watches a point. Each change after Arm returns causes at least one call of wake. wake is called from
// any goroutine, concurrently with other wakes. It must return soon. It may call Arm and Close of watches. A
// wake only means that the caller should observe again. A running wake may still return after the watch is
// closed. Errors are ErrLimit, ErrNone and ErrClosed, in a PointError: the caller must poll.
//
// Errors are ErrLimit, ErrNone and ErrClosed, in a PointError: whoever wants to know has to look at
// intervals.
func (w *Watcher) Arm(p Point, wake func()) (Watch, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	x, err := w.arm(p, wake)
	if err != nil {
		return nil, &PointError{p, err} // not an interface that holds a nil pointer
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

// Close closes all watches and waits for running wakes. wake must not call it.
func (w *Watcher) Close() {
	w.files.close()
	w.units.Close()
}
