// Package host is the only way to touch the node: its files, commands,
// accounts and the run lock, each in a package of its own below. Nothing else
// in this module changes the machine or starts a process.
package host

import (
	"context"
	"io"
	"log/slog"

	"github.com/musterfleet/muster/resources/host/accounts"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/lock"
)

// Options are what a Host is made from.
type Options struct {
	// StateDir is where the node's lock, journal and temporary bundles are kept. It
	// is made when it is first needed. Without one there is no run lock, and what
	// a killed run left behind is not found again.
	StateDir string
	// Log gets what is worth knowing but is no failure. Nil discards.
	Log *slog.Logger
	// OnStart is told of every command that is started, right before. Nil tells nobody.
	OnStart func(argv []string)
}

// Host is this machine. It is safe for concurrent use. Make it with New.
type Host struct {
	*files.Disk
	*accounts.Accounts
	*command.Runner
	*lock.Locks
}

// New makes a host. It touches nothing yet.
func New(o Options) *Host {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	runner := command.New(o.OnStart)

	return &Host{
		Disk:     files.New(files.Options{StateDir: o.StateDir, Log: o.Log}),
		Accounts: accounts.New(accounts.Options{Commands: runner, Log: o.Log}),
		Runner:   runner,
		Locks:    lock.New(o.StateDir),
	}
}

// BeginRun is BeginRun of the disk. The account tables are read anew at their
// next use.
func (h *Host) BeginRun(ctx context.Context, o files.RunOptions) error {
	h.ForgetAccounts()

	return h.Disk.BeginRun(ctx, o)
}

// Write is Write of the disk, after which accounts whose file it was are read anew.
func (h *Host) Write(ctx context.Context, path string, content io.Reader, a files.Attrs) error {
	defer h.FileWritten(path)

	return h.Disk.Write(ctx, path, content, a)
}
