package service

import (
	"errors"

	"github.com/musterfleet/muster/model"
)

// ErrNotFound is a service that the machine does not know.
var ErrNotFound = errors.New("service not found")

// State is what the machine says of a service. Its ensure is running or stopped.
type State struct {
	model.CommonState
	Metadata Metadata `json:"metadata"`

	// Obstacles are what cannot be done to it as it is.
	Obstacles Obstacles `json:"-"`
	// Starting says of one that is stopped that it is about to run: it takes long to
	// start, or is started again each time that it ends.
	Starting bool `json:"-"`
	// Outdated reports whether the service manager has not read all that there is about it.
	Outdated bool `json:"-"`
}

// Metadata describes a service.
type Metadata struct {
	Name     string `json:"name" jsonschema_description:"The service"`
	Provider string `json:"provider"`
	Enabled  bool   `json:"enabled" jsonschema_description:"Whether it starts at boot"`
	Running  bool   `json:"running" jsonschema_description:"Whether it runs"`
	// Active and UnitFile are the service manager's own words.
	Active   string `json:"active_state" jsonschema_description:"What systemctl is-active answers"`
	UnitFile string `json:"enabled_state" jsonschema_description:"What systemctl is-enabled answers"`
}

// Obstacles are the reasons for which something cannot be done; nil means that it can.
type Obstacles struct{ Start, Enable, Disable error }
