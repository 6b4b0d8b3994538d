package engine

import (
	"context"

	"github.com/musterfleet/muster/resources/resource"
)

// Status looks at one resource and changes nothing: what muster status shows.
// Its errors are those of choosing a provider and of the look.
func Status(ctx context.Context, env resource.Env, r *resource.Resource) (resource.State, error) {
	var state resource.State
	err := protect(func() error {
		p, err := r.Type.Select(env.Facts, r.Spec)
		if err != nil {
			return err
		}
		state, err = r.Type.Status(ctx, env, p, r.Spec)
		return err
	})
	if err != nil {
		return nil, err
	}

	return state, nil
}
