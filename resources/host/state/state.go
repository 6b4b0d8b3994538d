// Package state is the state directory: its format, the temporary directories in it,
// and the record of what a killed run leaves elsewhere. Nobody else could exchange it,
// so what is in it is named by path.
package state

import (
	"context"
	"errors"
	"log/slog"
	"sync"
)

// ErrNone is an operation that needs a state directory where there is none.
var ErrNone = errors.New("no state directory is set")

// Dir is the state directory. It is safe for concurrent use. Make it with New.
type Dir struct {
	path string
	log  *slog.Logger

	mu     sync.Mutex
	litter *litterRecord
}

// New returns the state directory at path, empty for none. Without one a run does not
// find what a killed one left behind. It touches nothing yet. log gets warnings and
// what was cleared up.
func New(path string, log *slog.Logger) *Dir { return &Dir{path: path, log: log} }

// StateDir returns the path of the directory.
func (d *Dir) StateDir() string { return d.path }

// BeginRun removes the litter of killed runs, unless the run is joined: within
// another one, which keeps the record. Litter that cannot be removed is logged and
// left for the next run. An error is a record of litter that cannot be read or written.
func (d *Dir) BeginRun(ctx context.Context, joined bool) error {
	if d.path == "" {
		return nil
	}
	record, err := openLitter(d.path, joined)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.litter != nil {
		return errors.Join(errors.New("a run has begun already"), record.close())
	}
	record.clean(ctx, d.log)
	if !joined {
		cleanTemp(ctx, d.path, d.log, isDead)
	}
	d.litter = record

	return nil
}

// EndRun closes what BeginRun opened. Without a run it does nothing.
func (d *Dir) EndRun() error {
	d.mu.Lock()
	record := d.litter
	d.litter = nil
	d.mu.Unlock()
	if record == nil {
		return nil
	}

	return record.end()
}
