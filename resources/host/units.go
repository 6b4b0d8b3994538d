package host

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/systembus"
)

// booted is a directory that exists where systemd is the first process.
const booted = "/run/systemd/system"

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
	if !h.Units.ArePending() || !reloads() {
		return false, nil
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

	return true, nil
}
