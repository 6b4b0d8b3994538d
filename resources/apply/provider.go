package apply

import (
	"context"

	"github.com/musterfleet/muster/resources/resource"
)

// ApplyProvider is a kind of child manifest.
type ApplyProvider interface {
	resource.Provider
	// ApplyManifest ends the execution of a child manifest, whose resources have run
	// as part of the run: it judges and tells what came of them. Its error says
	// how many failed.
	ApplyManifest(ctx context.Context, env resource.Env, spec *Spec) (*State, error)
}
