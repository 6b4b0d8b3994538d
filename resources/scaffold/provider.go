package scaffold

import (
	"context"

	"github.com/musterfleet/muster/resources/resource"
)

// ScaffoldProvider renders templates into a directory.
type ScaffoldProvider interface {
	resource.Provider
	// Status renders the templates and compares what they give with what is there.
	// It changes nothing, and runs no post commands. A source that is not there is
	// a resource.Missing.
	Status(ctx context.Context, env resource.Env, spec *Spec) (*State, error)
	// Scaffold renders the templates, writes what differs, runs the post commands
	// on what it wrote, and with purge removes what no template gives.
	Scaffold(ctx context.Context, env resource.Env, spec *Spec) error
	// Remove removes the changed and stable files of a state, and the directories
	// that are empty afterwards. It goes on after an error.
	Remove(ctx context.Context, env resource.Env, spec *Spec, state *State) error
}
