package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/resources/host/units"
)

// booted is the directory that exists if systemd is the init system (sd_booted).
const booted = "/run/systemd/system"

// The folder and the name of the record of a pending daemon-reload.
const (
	unitRecords  = "units"
	pendingUnits = "pending"
)

func canReload() bool {
	if _, err := os.Lstat(booted); err != nil || units.IsOffline("/") {
		return false
	}
	_, err := command.FindProgram("systemctl")

	return err == nil
}

// WouldReloadUnits reports whether a change of any of the files causes a daemon-reload.
func (h *Host) WouldReloadUnits(paths ...string) bool {
	return h != nil && canReload() && files.IsUnitFile(paths...)
}

// IsReloadPending reports whether ReloadUnits would run a daemon-reload for a killed run. parents
// are the runs that the current run belongs to.
func (h *Host) IsReloadPending(parents []string) bool {
	return len(h.expected.killed(h, parents)) > 0 && canReload()
}

// ReloadPendingUnits runs a daemon-reload within a run if unit files changed since the last one. Call it before a command,
// which may use the units.
func (h *Host) ReloadPendingUnits(ctx context.Context) error {
	if h == nil || !h.Units.ArePending() || !canReload() {
		return nil
	}

	return h.reloadUnits(ctx)
}

// ReloadUnits ends a run: it runs a daemon-reload if unit files changed since the last one, or if a
// killed run left a record of ExpectUnitChange. parents are the runs that the run belongs to. It
// reports whether it ran a daemon-reload.
func (h *Host) ReloadUnits(ctx context.Context, run string, parents []string) (done bool, err error) {
	h.expected.end(run)
	killed := h.expected.killed(h, parents)
	if !h.Units.ArePending() && !slices.ContainsFunc(killed, func(id string) bool { return id != run }) || !canReload() {
		return false, h.expected.forget(ctx, h, killed)
	}
	if err := h.reloadUnits(ctx); err != nil {
		return false, err
	}

	return true, h.expected.forget(ctx, h, killed)
}

func (h *Host) reloadUnits(ctx context.Context) error {
	changes := h.Units.Changes()
	result, err := h.Run(ctx, command.Command{Argv: []string{"systemctl", "daemon-reload", "--system"}, Env: []string{"LC_ALL=C.UTF-8"}})
	if err == nil && result.ExitCode != 0 {
		err = errors.New(result.Stderr.LastLines(3))
	}
	if err != nil {
		return fmt.Errorf("unit files changed, but systemctl daemon-reload failed: %w", err)
	}
	h.Units.NoteRead(changes)

	return nil
}

// ExpectUnitChange records that a run is about to change unit files. If muster is killed before the
// daemon-reload, the next run catches up.
func (h *Host) ExpectUnitChange(ctx context.Context, run string) error {
	e := &h.expected
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.runs[run] {
		return nil
	}
	ids, _, err := Recall[[]string](h, unitRecords, pendingUnits)
	if err == nil {
		err = h.Remember(ctx, unitRecords, pendingUnits, append(ids, run))
	}
	switch {
	case errors.Is(err, state.ErrNone):
		return nil
	case err != nil:
		return err
	}
	if e.runs == nil {
		e.runs = map[string]bool{}
	}
	e.runs[run] = true

	return nil
}

// expectedUnits are the runs that change unit files. The state directory has a record of them, in
// which runs stay that were killed.
type expectedUnits struct {
	// mu guards the record, which other runs of this process change at the same time.
	mu sync.Mutex
	// runs are the active runs of this process in the record.
	runs map[string]bool
}

func (e *expectedUnits) end(run string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.runs, run)
}

// killed returns the runs of the record that are neither active in this process nor among parents.
func (e *expectedUnits) killed(h *Host, parents []string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids, found, err := Recall[[]string](h, unitRecords, pendingUnits)
	if err != nil || !found {
		return nil
	}
	if len(ids) == 0 {
		return []string{""} // the record is damaged, or of an earlier version
	}

	return slices.DeleteFunc(ids, func(id string) bool { return e.runs[id] || slices.Contains(parents, id) })
}

func (e *expectedUnits) forget(ctx context.Context, h *Host, runs []string) error {
	if len(runs) == 0 {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	ids, found, err := Recall[[]string](h, unitRecords, pendingUnits)
	if err != nil || !found {
		return err
	}
	if ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(runs, id) }); len(ids) > 0 {
		return h.Remember(ctx, unitRecords, pendingUnits, ids)
	}

	return h.Forget(unitRecords, pendingUnits)
}
