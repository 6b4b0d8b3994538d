package apply

import (
	"context"

	"github.com/musterfleet/muster/resources/resource"
)

// ApplyProvider executes one kind of child manifest.
type ApplyProvider interface {
	resource.Provider
	// ApplyManifest judges and logs the outcome of a child manifest, whose
	// resources ran as part of the run. Its error counts the failed ones.
	ApplyManifest(ctx context.Context, env resource.Env, spec *Spec) (*State, error)
}
