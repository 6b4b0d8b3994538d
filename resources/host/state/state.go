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

// ErrNone means that an operation needs a state directory and none is set.
var ErrNone = errors.New("no state directory is set")

// Dir is the state directory. It is safe for concurrent use. Create it with New.
type Dir struct {
	path string
	log  *slog.Logger
	// keeps means that runs reuse the record of litter.
	keeps   bool
	checked Checked

	mu sync.Mutex
	// format is the mark of the format file after it was read with the format of this version.
	format fileMark
	litter *litterRecord
	// runs is the number of runs that write into litter.
	runs int
	// kept is the record of the last run. It is current if the file still has this mark.
	kept *litterRecord
	mark fileMark
}

// New returns the state directory at path, empty for none. Without one a run does not find the litter of a
// killed run. New accesses no file. log receives warnings and messages about removed litter.
func New(path string, log *slog.Logger) *Dir { return &Dir{path: path, log: log} }

// KeepLitter makes the runs of this process reuse the record of litter, so that a directory is recorded and
// synced once for many runs. Concurrent runs share the record. Call it before the first run of a process with
// many runs.
func (d *Dir) KeepLitter() { d.keeps = true }

// StateDir returns the path of the directory.
func (d *Dir) StateDir() string { return d.path }

// BeginRun removes the litter of killed runs, unless the run is joined: an enclosing run owns the record. It
// logs litter that it cannot remove and leaves it for the next run. It returns an error if the record cannot
// be read or written, or if another run of this process is active and the record is not reused.
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

// takeKept returns the record of the last run of this process if no other process has run since. The run then
// has nothing to clean.
func (d *Dir) takeKept(joined bool) *litterRecord {
	record := d.kept
	d.kept = nil
	if record == nil {
		return nil
	}
	if now, err := litterMark(record.file.Name()); joined || err != nil || now != d.mark {
		_ = record.close() // no run writes to it any more
		return nil
	}

	return record
}

// EndRun ends a run. The last run closes the files that BeginRun opened. Without a run it does nothing.
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
