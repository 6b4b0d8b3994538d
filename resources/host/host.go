// Package host gives access to the node: its files, commands, accounts and run lock. Only this
// package and the packages below it change the machine or start processes.
package host

import (
	"context"
	"io"
	"log/slog"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/state"
	"golang.org/x/sys/unix"
)

// Options configure a Host.
type Options struct {
	// StateDir holds the lock, the journal and temporary directories of the node. It is created when it is
	// first needed. Without it there is no run lock, and the files of a killed run stay.
	StateDir string
	// Log gets warnings and progress. Nil discards.
	Log *slog.Logger
	// OnStart is called right before a command starts. Nil is not called.
	OnStart func(argv []string)
}

// Host gives access to this machine. It is safe for concurrent use. Create it with New.
type Host struct {
	*files.Disk
	*Accounts
	*command.Runner
	*state.Locks

	// expected are the runs with a pending daemon-reload.
	expected expectedUnits
}

// New returns a host without accessing the machine.
func New(o Options) *Host {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	var disk *files.Disk
	runner := command.New(func(argv []string) {
		disk.Settle()
		if o.OnStart != nil {
			o.OnStart(argv)
		}
	})

	disk = files.New(files.Options{StateDir: o.StateDir, Log: o.Log, Label: labels(runner)})

	return &Host{
		Disk:     disk,
		Accounts: NewAccounts(AccountOptions{Commands: runner, Log: o.Log}),
		Runner:   runner,
		Locks:    state.NewLocks(o.StateDir),
	}
}

// SetUmask sets the umask of this process to 022: by default only the owner may write to new files.
func SetUmask() { unix.Umask(0o022) }

// BeginRun discards the account tables and begins a run of the disk.
func (h *Host) BeginRun(ctx context.Context, o files.RunOptions) error {
	h.ForgetAccounts()

	return h.Disk.BeginRun(ctx, o)
}

// Write writes a file like Write of the disk. It discards the account tables if path is one of their files.
func (h *Host) Write(ctx context.Context, path string, content io.Reader, a files.Attrs) error {
	defer h.FileWritten(path)

	return h.Disk.Write(ctx, path, content, a)
}

// WriteWith is WriteWith of the disk, and otherwise like Write.
func (h *Host) WriteWith(ctx context.Context, path string, content io.Reader, a files.Attrs, o files.WriteOptions) error {
	defer h.FileWritten(path)

	return h.Disk.WriteWith(ctx, path, content, a, o)
}
