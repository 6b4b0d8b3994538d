// Package files accesses the files of the node by descriptor: a change applies to the checked file.
package files

import (
	"context"
	"log/slog"

	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/host/state"
)

// Options configure a Disk.
type Options struct {
	// StateDir holds the record of temporary files and the temporary directories. Without it a run does not
	// find the temporary files of a killed run.
	StateDir string
	// Log receives warnings and messages about removed temporary files. Nil discards them.
	Log *slog.Logger
	// Label returns the default SELinux label of a path, or the empty string. It is nil on a
	// machine without SELinux.
	Label func(ctx context.Context, path string) (string, error)
}

// Disk accesses the file systems of this machine. It is safe for concurrent use. Create it with New.
type Disk struct {
	*state.Dir
	log     *slog.Logger
	label   func(ctx context.Context, path string) (string, error)
	paths   paths.Resolver
	digests digestCache
	buffers buffers
	// replaced are given back after they were replaced.
	replaced replaced
	// Units counts changes of systemd unit files.
	Units UnitFiles
}

// New returns a disk without accessing any file.
func New(o Options) *Disk {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}

	return &Disk{Dir: state.New(o.StateDir, o.Log), log: o.Log, label: o.Label}
}

// RunOptions are the options of a run.
type RunOptions struct {
	// ReadAll clears the cache of digests, so that the run reads all content.
	ReadAll bool
	// Joined marks a run within another run, which owns the record of temporary files: the joined run does
	// not clean up.
	Joined bool
}

// BeginRun begins a run in the state directory. It clears the cache of digests for ReadAll.
func (d *Disk) BeginRun(ctx context.Context, o RunOptions) error {
	if o.ReadAll {
		d.digests.forget()
	}

	return d.Dir.BeginRun(ctx, o.Joined)
}
