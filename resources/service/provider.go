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

// ServiceProvider is a service manager.
type ServiceProvider interface {
	resource.Provider
	// Status tells whether a service runs and whether it starts at boot. A service
	// that is not there is ErrNotFound.
	Status(ctx context.Context, env resource.Env, service string) (*State, error)
	// StatusAll is Status for many with one question. Both results are as long as services.
	StatusAll(ctx context.Context, env resource.Env, services []string) ([]*State, []error)
	// Change does one thing to a service: it starts it and waits until it runs, stops
	// it and waits until it has, restarts it where it runs and starts it otherwise,
	// or lets it start at boot or keeps it from that. The error of one that does not
	// come up has the last lines that it logged, as resource.Said.
	Change(ctx context.Context, env resource.Env, action Action, service string) error
	// ChangeAll does one thing to many services with one command. Its errors are as
	// long as services, nil for those to which it was done as far as is known.
	ChangeAll(ctx context.Context, env resource.Env, action Action, services []string) []error
	// Reload lets the service manager read anew what there is about all services.
	Reload(ctx context.Context, env resource.Env) error
}
