package scaffold

import (
	"context"

	"github.com/musterfleet/muster/resources/resource"
)

// ScaffoldProvider renders templates into a directory.
type ScaffoldProvider interface {
	resource.Provider
	// Status renders the templates and compares the files with the target. It
	// changes nothing and runs no post commands. The error for a source that does
	// not exist is a resource.PrerequisiteError.
	Status(ctx context.Context, env resource.Env, spec *Spec) (*State, error)
	// Scaffold renders the templates, writes what differs unless validate refuses
	// it, runs the post commands on what it wrote, and with purge removes what no
	// template yields.
	Scaffold(ctx context.Context, env resource.Env, spec *Spec) error
	// Remove removes the changed and stable files of a state, and the directories
	// that are empty afterwards. It continues after an error.
	Remove(ctx context.Context, env resource.Env, spec *Spec, state *State) error
}
