package service

import (
	"context"

	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// Action changes a service.
type Action string

// The actions of plans.
const (
	Start           Action = "start"
	Stop            Action = "stop"
	Restart         Action = "restart"
	Reload          Action = "reload"
	ReloadOrRestart Action = "reload-or-restart"
	Enable          Action = "enable"
	Reenable        Action = "reenable"
	Disable         Action = "disable"
	Mask            Action = "mask"
	Unmask          Action = "unmask"
)

// ServiceProvider is a service manager.
type ServiceProvider interface {
	resource.Provider
	// StatusAll reads with one command which services run and which services start at boot. Both
	// results have the length of services. The error for a missing service is ErrNotFound, together
	// with a state if the service still runs.
	StatusAll(ctx context.Context, env resource.Env, services []string) ([]*State, []error)
	// ChangeAll applies one action to services with one command, and waits until they started or
	// stopped. Its errors have the length of services, nil where the action succeeded as far as
	// known. An error carries the last lines of the service's log, as resource.CommandError.
	ChangeAll(ctx context.Context, env resource.Env, action Action, services []string) []error
	// Reload makes the service manager read all its files again.
	Reload(ctx context.Context, env resource.Env) error
}

// ExternalStartDetector is a service manager that also starts services for other users.
type ExternalStartDetector interface {
	// AreStarted reports which services run, or will run because another user started them.
	AreStarted(ctx context.Context, env resource.Env, services []string) []bool
}

// Deferrer is a service manager that makes some changes at the end of a run: the changes that end muster
// itself.
type Deferrer interface {
	// IsDeferred reports whether a change of a service is made at the end of the run.
	IsDeferred(ctx context.Context, env resource.Env, action Action, service string) bool
	// Defer returns a function that makes the change at the end of the run. Until then the state
	// of the service includes the change.
	Defer(ctx context.Context, env resource.Env, action Action, service string) func(context.Context) error
	// Deferred returns the function of a stop that an earlier attempt of the run deferred, nil for none.
	Deferred(ctx context.Context, env resource.Env, service string) func(context.Context) error
}

// Watcher is a service manager that signals changes of services.
type Watcher interface {
	// Watches returns the points that change with a service.
	Watches(service string) []watch.Point
}
