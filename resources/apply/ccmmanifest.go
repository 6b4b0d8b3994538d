package apply

import (
	"context"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// CCMManifest executes child manifests.
type CCMManifest struct{}

// Name returns the value of the provider property.
func (CCMManifest) Name() string { return "ccmmanifest" }

// IsManageable accepts every child manifest with priority 1.
func (CCMManifest) IsManageable(model.Facts, resource.Spec) (bool, int, error) { return true, 1, nil }

// ApplyManifest logs the outcome of the child's resources, and fails when one
// of them failed.
func (CCMManifest) ApplyManifest(ctx context.Context, env resource.Env, spec *Spec) (*State, error) {
	state := StateOf(env, spec)
	attrs := []any{"resources", state.Resources, "changed", state.Changed, "skipped", state.Skipped}
	if err := Failure(state); err != nil {
		env.Log.ErrorContext(ctx, "child manifest failed", append(attrs, "failed", state.Failed, "unmet", state.Unmet)...)
		return state, err
	}
	if state.Changed > 0 {
		env.Log.WarnContext(ctx, "child manifest changed", attrs...)
	} else {
		env.Log.InfoContext(ctx, "child manifest applied", attrs...)
	}

	return state, nil
}
