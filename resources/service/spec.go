// Package service is the resource type for system services: whether they run,
// and whether they start at boot.
package service

import "github.com/musterfleet/muster/model"

// Spec are the properties of a service.
type Spec struct {
	model.Common
	Enable  *bool  `json:"enable,omitempty" jsonschema_description:"Whether it starts at boot; unset: not managed"`
	Masked  *bool  `json:"masked,omitempty" jsonschema_description:"Whether nothing can start it; unset leaves that as it is"`
	Refresh Action `json:"refresh,omitempty" jsonschema:"enum=restart,enum=reload,enum=reload-or-restart,default=restart" jsonschema_description:"Action after a change of a resource that it subscribes to"`
}

// isGone reports whether the service need not exist.
func (s *Spec) isGone() bool {
	return s.Ensure == EnsureStopped && (is(s.Enable, false) || is(s.Masked, true))
}

// is reports whether a property is set to a value.
func is(property *bool, value bool) bool { return property != nil && *property == value }

// CanonicalName returns the name of the unit; .service is optional in the spec.
func (s *Spec) CanonicalName() string { return UnitName(s.Name) }

// The values of ensure.
const (
	EnsureRunning = "running"
	EnsureStopped = "stopped"
)
