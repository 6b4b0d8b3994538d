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

// booted is a directory that exists where systemd is the first process.
const booted = "/run/systemd/system"

// unitRecords is the folder, and pendingUnits the name, of the record of a pending daemon-reload.
const (
	unitRecords  = "units"
	pendingUnits = "pending"
)

// reloads reports whether the systemd of this machine reads unit files.
func reloads() bool {
	if _, err := os.Lstat(booted); err != nil || systembus.IsOffline("/") {
		return false
	}
	_, err := command.FindProgram("systemctl")

	return err == nil
}

// WouldReloadUnits reports whether a change of the file at path is followed by a daemon-reload
// of systemd.
func (h *Host) WouldReloadUnits(path string) bool {
	return h != nil && files.IsUnitFile(path) && reloads()
}

// ReloadUnits makes systemd read its unit files if muster changed any since the last
// daemon-reload. It reports whether it ran one.
func (h *Host) ReloadUnits(ctx context.Context) (done bool, err error) {
	_, recorded, _ := Recall[bool](h, unitRecords, pendingUnits)
	isKilled := recorded && !h.expectsUnits.Load()
	if !isKilled && !h.Units.ArePending() || !reloads() {
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
// daemon-reload, the next run makes it.
func (h *Host) ExpectUnitChange(ctx context.Context) error {
	if h.expectsUnits.Swap(true) {
		return nil
	}
	if err := h.Remember(ctx, unitRecords, pendingUnits, true); !errors.Is(err, state.ErrNone) {
		return err
	}

	return nil
}

// forgetUnits removes the record of ExpectUnitChange.
func (h *Host) forgetUnits(recorded bool) error {
	if h.expectsUnits.Store(false); !recorded {
		return nil
	}

	return h.Forget(unitRecords, pendingUnits)
}
