// Package service is the resource type for system services: whether they run,
// and whether they start at boot.
package service

import "github.com/musterfleet/muster/model"

// Spec are the properties of a service.
type Spec struct {
	model.Common
	Enable *bool `json:"enable,omitempty" jsonschema_description:"Whether it starts at boot; unset leaves that as it is"`
}

// CanonicalName returns the name of the unit, of which .service may be left out.
func (s *Spec) CanonicalName() string { return UnitName(s.Name) }

// The values of ensure.
const (
	EnsureRunning = "running"
	EnsureStopped = "stopped"
)
