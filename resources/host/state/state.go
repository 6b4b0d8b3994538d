// Package state manages the state directory: its format, the locks of runs and of the agent,
// temporary directories, and the record of files that a killed run leaves in other
// directories. Other users cannot change the directory, so the package opens its files by path.
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
	// keeps is that the record of litter is kept between runs.
	keeps   bool
	checked Checked

	mu sync.Mutex
	// format is the mark of the format file when it was read, and had that of this version.
	format fileMark
	litter *litterRecord
	// runs are how many write into litter.
	runs int
	// kept is the record of the last run, which nobody has touched since if it still has
	// this mark.
	kept *litterRecord
	mark fileMark
}

// New returns the state directory at path, empty for none. Without one a run does not
// find what a killed one left behind. It touches nothing yet. log gets warnings and
// what was cleared up.
func New(path string, log *slog.Logger) *Dir { return &Dir{path: path, log: log} }

// KeepLitter has the record of litter kept from one run of this process to the next: a
// directory is then recorded, and synced, once for many runs. Runs that go on at the same
// time share it. It is for who makes many, and called before the first.
func (d *Dir) KeepLitter() { d.keeps = true }

// StateDir returns the path of the directory.
func (d *Dir) StateDir() string { return d.path }

// BeginRun removes the litter of killed runs, unless the run is joined: within
// another one, which keeps the record. Litter that cannot be removed is logged and
// left for the next run. An error is a record of litter that cannot be read or written,
// or another run of this process that goes on, unless the record is kept.
func (d *Dir) BeginRun(ctx context.Context, joined bool) error {
	if d.path == "" {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.litter != nil && !d.keeps {
		return errors.New("a run has begun already")
	}
	if d.litter == nil {
		d.litter = d.takeKept(joined)
	}
	if d.litter != nil {
		d.runs++
		return nil
	}
	record, err := openLitter(d.path, joined)
	if err != nil {
		return err
	}
	record.clean(ctx, d.log)
	if !joined {
		cleanTemp(ctx, d.path, d.log, isDead)
	}
	d.litter, d.runs = record, 1

	return nil
}

// takeKept returns the record of the last run of this process where nothing else has
// run since: it has nothing to clean then.
func (d *Dir) takeKept(joined bool) *litterRecord {
	record := d.kept
	d.kept = nil
	if record == nil {
		return nil
	}
	if now, err := litterMark(record.file.Name()); joined || err != nil || now != d.mark {
		_ = record.close() // nothing is written to it any more
		return nil
	}

	return record
}

// EndRun ends a run, and with the last one closes what BeginRun opened. Without a run it
// does nothing.
func (d *Dir) EndRun() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runs--; d.runs > 0 {
		return nil
	}
	d.runs = 0
	record := d.litter
	d.litter = nil
	if record == nil {
		return nil
	}
	if d.keeps && record.mayStay() {
		if mark, err := litterMark(record.file.Name()); err == nil {
			d.kept, d.mark = record, mark
			return nil
		}
	}

	return record.end()
}
