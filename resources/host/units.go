package host

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/resources/host/systembus"
)

// booted is the directory that exists if systemd is the init system (sd_booted).
const booted = "/run/systemd/system"

// The folder and the name of the record of a pending daemon-reload.
const (
	unitRecords  = "units"
	pendingUnits = "pending"
)

// canReload reports whether systemd runs here and systemctl is installed.
func canReload() bool {
	if _, err := os.Lstat(booted); err != nil || systembus.IsOffline("/") {
		return false
	}
	_, err := command.FindProgram("systemctl")

	return err == nil
}

// WouldReloadUnits reports whether a change of the file at path causes a daemon-reload.
func (h *Host) WouldReloadUnits(path string) bool {
	return h != nil && canReload() && files.IsUnitFile(path)
}

// IsReloadPending reports whether ReloadUnits would run a daemon-reload for a killed run.
func (h *Host) IsReloadPending() bool {
	_, recorded, err := Recall[bool](h, unitRecords, pendingUnits)

	return err == nil && recorded && !h.expectsUnits.Load() && canReload()
}

// ReloadUnits runs a daemon-reload if unit files changed since the last one, or if a killed run
// left a record of ExpectUnitChange. It reports whether it ran one.
func (h *Host) ReloadUnits(ctx context.Context) (done bool, err error) {
	_, recorded, _ := Recall[bool](h, unitRecords, pendingUnits)
	wasKilled := recorded && !h.expectsUnits.Load()
	if !wasKilled && !h.Units.ArePending() || !canReload() {
		return false, h.forgetUnits(recorded)
	}
	changes := h.Units.Changes()
	result, err := h.Run(ctx, command.Command{Argv: []string{"systemctl", "daemon-reload", "--system"}, Env: []string{"LC_ALL=C.UTF-8"}})
	if err == nil && result.ExitCode != 0 {
		err = errors.New(result.Stderr.LastLines(3))
	}
	if err != nil {
		return false, fmt.Errorf("unit files changed, but systemctl daemon-reload failed: %w", err)
	}
	h.Units.NoteRead(changes)

	return true, h.forgetUnits(recorded)
}

// ExpectUnitChange records that unit files are about to change. If muster is killed before the
// daemon-reload, the next run catches up.
func (h *Host) ExpectUnitChange(ctx context.Context) error {
	if h.expectsUnits.Swap(true) {
		return nil
	}
	err := h.Remember(ctx, unitRecords, pendingUnits, true)
	if errors.Is(err, state.ErrNone) {
		return nil
	}
	if err != nil {
		h.expectsUnits.Store(false)
	}

	return err
}

// forgetUnits removes the record of ExpectUnitChange.
func (h *Host) forgetUnits(recorded bool) error {
	if h.expectsUnits.Store(false); !recorded {
		return nil
	}

	return h.Forget(unitRecords, pendingUnits)
}
