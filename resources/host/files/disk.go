// Package files touches the files of the node by descriptor: what was checked
// is what is changed.
package files

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/musterfleet/muster/resources/host/paths"
)

// Options configure a Disk.
type Options struct {
	// StateDir holds the record of litter and the temporary directories. Without
	// one a run does not find what a killed one left behind.
	StateDir string
	// Log gets warnings and what was cleared up. Nil discards.
	Log *slog.Logger
}

// Disk is the file systems of this machine. It is safe for concurrent use. Make
// it with New.
type Disk struct {
	stateDir string
	log      *slog.Logger
	paths    paths.Resolver
	digests  digestCache
	buffers  buffers

	mu     sync.Mutex
	litter *litterRecord
}

// New returns a disk. It touches nothing yet.
func New(o Options) *Disk {
	d := &Disk{stateDir: o.StateDir, log: o.Log}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	return d
}

// StateDir returns the directory of the options.
func (d *Disk) StateDir() string { return d.stateDir }

// RunOptions are how a run uses the disk.
type RunOptions struct {
	// ReadAll forgets every remembered digest, so that the run reads all content.
	ReadAll bool
	// Joined marks a run within another one, which keeps the record of litter:
	// nothing is removed at the beginning or struck out at the end.
	Joined bool
}

// BeginRun removes the litter of killed runs. Litter that cannot be removed is
// logged and left for the next run. An error is a record of litter that cannot
// be read or written.
func (d *Disk) BeginRun(ctx context.Context, o RunOptions) error {
	if o.ReadAll {
		d.digests.forget()
	}
	if d.stateDir == "" {
		return nil
	}
	record, err := openLitter(d.stateDir, o.Joined)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.litter != nil {
		return errors.Join(errors.New("a run has begun already"), record.close())
	}
	record.clean(ctx, d.log)
	if !o.Joined {
		cleanTemp(ctx, d.stateDir, d.log)
	}
	d.litter = record

	return nil
}

// EndRun closes what BeginRun opened. Without a run it does nothing.
func (d *Disk) EndRun() error {
	d.mu.Lock()
	record := d.litter
	d.litter = nil
	d.mu.Unlock()
	if record == nil {
		return nil
	}

	return record.end()
}
