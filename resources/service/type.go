package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Type is the service type.
type Type struct{}

// New returns the type with its providers, for resources.All.
func New(providers ...ServiceProvider) *resource.Type { return resource.Of(Type{}, providers...) }

// Info describes the type. Packages also provide unit files, and a starting service creates files.
func (Type) Info() resource.Info {
	return resource.Info{
		Name:         "service",
		Summary:      "System services, running or stopped, and whether they start at boot",
		NameHelp:     "the name of the service, such as nginx",
		Argument:     "ensure",
		Abbreviation: "svc",
		Ensures:      []string{EnsureRunning, EnsureStopped},
		EnsureHelp:   "Whether it runs now",
		Reads:        resource.Units | resource.Paths | resource.Packages,
		Writes:       resource.Units | resource.Paths,
		Refreshes:    true,
	}
}

// New returns properties with restart as the refresh action.
func (Type) New() *Spec { return &Spec{Refresh: Restart} }

// StatusAll reads all services with one command.
func (Type) StatusAll(ctx context.Context, env resource.Env, p ServiceProvider, specs []*Spec) ([]*State, []error) {
	names := make([]string, len(specs))
	for i, spec := range specs {
		names[i] = spec.Name
	}
	states, errs := p.StatusAll(ctx, env, names)
	for i := range errs {
		states[i], errs[i] = missing(p, specs[i], states[i], errs[i])
	}

	return states, errs
}

// missing returns the state of a missing service that need not exist, or else an error with the resources
// that may provide it.
func missing(p ServiceProvider, spec *Spec, state *State, err error) (*State, error) {
	switch {
	case !errors.Is(err, ErrNotFound):
		return state, err
	case state != nil && spec.Ensure == EnsureStopped && !is(spec.Enable, true):
		return state, nil
	case spec.isGone(), errors.Is(err, ErrStopped) && spec.Ensure == EnsureStopped && !is(spec.Enable, true):
		return &State{
			CommonState: model.CommonState{Ensure: EnsureStopped}, Missing: true,
			Metadata: Metadata{Name: spec.Name, Provider: p.Name(), Active: "inactive", UnitFile: "not-found"},
		}, nil
	default:
		err = fmt.Errorf("%w (correct its name, see systemctl list-unit-files, or declare what installs it before)", err)
		return nil, resource.PrerequisiteError{Needs: relations(spec), Err: err}
	}
}

// Prepare makes the service manager read its files again.
func (Type) Prepare(ctx context.Context, env resource.Env, p ServiceProvider, _ []*Spec) error {
	return p.Reload(ctx, env)
}
