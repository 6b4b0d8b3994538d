package service

import (
	"context"

	"github.com/musterfleet/muster/resources/resource"
)

// Action is what is done to a service.
type Action string

// The actions of plans.
const (
	Start   Action = "start"
	Stop    Action = "stop"
	Restart Action = "restart"
	Enable  Action = "enable"
	Disable Action = "disable"
)

// ServiceProvider is a service manager. The specification names its methods for
// one service.
type ServiceProvider interface {
	resource.Provider
	// Status tells whether a service runs and whether it starts at boot. A service
	// that is not there is ErrNotFound.
	Status(ctx context.Context, env resource.Env, service string) (*State, error)
	// StatusAll is Status for many with one question. Both results are as long as services.
	StatusAll(ctx context.Context, env resource.Env, services []string) ([]*State, []error)
	// Start starts a service and waits until it runs. Its error has the last lines
	// that the service logged, as resource.CommandError.
	Start(ctx context.Context, env resource.Env, service string) error
	// Stop stops a service and waits until it has.
	Stop(ctx context.Context, env resource.Env, service string) error
	// Restart stops a service where it runs, and starts it as Start does.
	Restart(ctx context.Context, env resource.Env, service string) error
	// Enable lets a service start at boot.
	Enable(ctx context.Context, env resource.Env, service string) error
	// Disable keeps a service from starting at boot.
	Disable(ctx context.Context, env resource.Env, service string) error
	// ChangeAll does one thing to many services with one command. Its errors are as
	// long as services, nil for those to which it was done as far as is known.
	ChangeAll(ctx context.Context, env resource.Env, action Action, services []string) []error
	// Reload lets the service manager read anew what there is about all services.
	Reload(ctx context.Context, env resource.Env) error
}
