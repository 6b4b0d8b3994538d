package service

import (
	"errors"
	"fmt"
	"time"

	"github.com/musterfleet/muster/model"
)

// ErrNotFound means that the service does not exist on the machine.
var ErrNotFound = errors.New("service not found")

// ErrStopped is an ErrNotFound: a unit without a file that muster stopped, such as a transient unit.
var ErrStopped = fmt.Errorf("%w: muster stopped it, and a unit without a file exists only while it runs", ErrNotFound)

// State is the observed state of a service. Its ensure is running or stopped.
type State struct {
	model.CommonState
	Metadata Metadata `json:"metadata"`

	// Obstacles are the changes that are impossible in this state.
	Obstacles Obstacles `json:"-"`
	// Starting marks a stopped service that is about to run: it takes long to
	// start, or restarts each time it ends.
	Starting bool `json:"-"`
	// Links are the links that enable a service, and Install the links of its [Install] section.
	// Both are nil unless they differ. Install is empty for a section that was removed.
	Links, Install []string `json:"-"`
	// Missing marks a service that does not exist.
	Missing bool `json:"-"`
	// Since is when it last began to run.
	Since time.Time `json:"-"`
	// Outdated reports that the service manager has not read the current unit files yet.
	Outdated bool `json:"-"`
}

// NeedsReload reports that the service manager must read its files first.
func (s *State) NeedsReload() bool { return s.Outdated }

// startSlack is how far the times of files and of systemd may differ.
const startSlack = 20 * time.Millisecond

// IsStartedSince reports whether the service runs since after a time.
func (s *State) IsStartedSince(at time.Time) bool {
	return s.Metadata.Running && s.Since.After(at.Add(startSlack))
}

// Metadata describes a service.
type Metadata struct {
	Name     string `json:"name" jsonschema_description:"The service"`
	Provider string `json:"provider"`
	Enabled  bool   `json:"enabled" jsonschema_description:"Whether it starts at boot"`
	Running  bool   `json:"running" jsonschema_description:"Whether it is running"`
	// Active and UnitFile are in the words of the service manager.
	Active   string `json:"active_state" jsonschema_description:"Answer of systemctl is-active"`
	UnitFile string `json:"enabled_state" jsonschema_description:"Answer of systemctl is-enabled"`
}

// Obstacles are the reasons why a change is impossible; nil means possible.
type Obstacles struct{ Start, Reload, Enable, Disable, Mask error }
