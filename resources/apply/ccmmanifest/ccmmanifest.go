// Package ccmmanifest applies child manifests that are files in the form of any
// manifest.
package ccmmanifest

import (
	"context"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/apply"
	"github.com/musterfleet/muster/resources/resource"
)

// Provider executes child manifests.
type Provider struct{}

// Name returns the value of the provider property.
func (Provider) Name() string { return "ccmmanifest" }

// IsManageable accepts every child manifest with priority 1.
func (Provider) IsManageable(model.Facts, resource.Spec) (bool, int, error) { return true, 1, nil }

// ApplyManifest logs the outcome of the child's resources, and fails when one
// of them failed.
func (Provider) ApplyManifest(ctx context.Context, env resource.Env, spec *apply.Spec) (*apply.State, error) {
	state := apply.StateOf(env, spec)
	attrs := []any{"resources", state.Resources, "changed", state.Changed, "skipped", state.Skipped}
	if err := apply.Failure(state); err != nil {
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
