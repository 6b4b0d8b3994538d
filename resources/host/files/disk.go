// Package files touches the files of the node by descriptor: what was checked
// is what is changed.
package files

import (
	"context"
	"log/slog"

	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/host/state"
)

// Options configure a Disk.
type Options struct {
	// StateDir holds the record of litter and the temporary directories. Without
	// one a run does not find what a killed one left behind.
	StateDir string
	// Log gets warnings and what was cleared up. Nil discards.
	Log *slog.Logger
	// Label returns the default SELinux label of a path, or the empty string. It is nil on a
	// machine without SELinux.
	Label func(ctx context.Context, path string) (string, error)
}

// Disk is the file systems of this machine. It is safe for concurrent use. Make
// it with New.
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

// New returns a disk. It touches nothing yet.
func New(o Options) *Disk {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}

	return &Disk{Dir: state.New(o.StateDir, o.Log), log: o.Log, label: o.Label}
}

// RunOptions are how a run uses the disk.
type RunOptions struct {
	// ReadAll forgets every remembered digest, so that the run reads all content.
	ReadAll bool
	// Joined marks a run within another one, which keeps the record of litter:
	// nothing is removed at the beginning or struck out at the end.
	Joined bool
}

// BeginRun begins a run in the state directory, and forgets the digests for one that
// reads all.
func (d *Disk) BeginRun(ctx context.Context, o RunOptions) error {
	if o.ReadAll {
		d.digests.forget()
	}

	return d.Dir.BeginRun(ctx, o.Joined)
}
