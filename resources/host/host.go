// Package host is the only way to touch the node: its files, commands,
// accounts, facts, the run lock and what muster keeps on disk. Nothing else in
// this module changes the machine or starts a process.
package host

import (
	"context"
	"errors"
	"log/slog"
	"sync"
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
	opts     Options
	log      *slog.Logger
	digests  digestCache
	accounts accountCache
	buffers  sync.Pool

	mu     sync.Mutex
	litter *litterRecord
}

// New makes a host. It touches nothing yet.
func New(o Options) *Host {
	h := &Host{opts: o, log: o.Log}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	h.buffers.New = func() any { return new([copyBuffer]byte) }

	return h
}

// StateDir gives the directory of the options.
func (h *Host) StateDir() string { return h.opts.StateDir }

// RunOptions are how a run wants its host.
type RunOptions struct {
	// ReadAll forgets every remembered digest, so that the run reads all content anew.
	ReadAll bool
	// Joined says that the run belongs to a parent's, which keeps the record of
	// litter: nothing is removed at its beginning or struck out at its end.
	Joined bool
}

// BeginRun tells the host that a run starts: the account tables are read anew
// at their next use, and the litter that a killed run left behind is removed.
// Litter that cannot be removed is logged and left for the next run. Its error
// is a record of litter that cannot be read or written.
func (h *Host) BeginRun(ctx context.Context, o RunOptions) error {
	h.ForgetAccounts()
	if o.ReadAll {
		h.digests.forget()
	}
	if h.opts.StateDir == "" {
		return nil
	}
	record, err := openLitter(h.opts.StateDir, o.Joined)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.litter != nil {
		return errors.Join(errors.New("a run has begun already"), record.close())
	}
	record.clean(ctx, h.log)
	if !o.Joined {
		h.cleanTemp(ctx)
	}
	h.litter = record

	return nil
}

// EndRun closes what BeginRun opened. Without a run it does nothing.
func (h *Host) EndRun() error {
	h.mu.Lock()
	record := h.litter
	h.litter = nil
	h.mu.Unlock()
	if record == nil {
		return nil
	}

	return record.end()
}
