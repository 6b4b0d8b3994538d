package engine

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// Status observes the last of resources and changes nothing. The resources before it are the
// resources of the manifest that it includes; its state is the result of a noop run of them. The
// error is the error of selecting a provider or of observing.
func Status(ctx context.Context, env resource.Env, resources []*resource.Resource) (resource.State, error) {
	target := resources[len(resources)-1]
	if target.Type.Include != nil {
		return statusOfIncluded(ctx, env, resources)
	}
	var state resource.State
	err := plan.Protect(func() error {
		p, err := target.Type.Select(env.Facts, target.Spec)
		if err != nil {
			return err
		}
		state, err = target.Type.Status(ctx, env, p, target.Spec)
		return err
	})
	if err != nil {
		return nil, err
	}

	return state, nil
}

func statusOfIncluded(ctx context.Context, env resource.Env, resources []*resource.Resource) (resource.State, error) {
	g, err := graph.Build(resources, func(model.Ref) bool { return true })
	if err != nil {
		return nil, err
	}
	env.Scope.Noop, env.Log = true, slog.New(slog.DiscardHandler) // the caller needs only the state
	r := newRun(g, Options{Env: env})
	r.do(ctx)
	if state := r.observer.state(r.Graph.Node(resources[len(resources)-1].Ref())); state != nil {
		return state, nil
	}

	return nil, errors.New(strings.Join(r.report.summary.Errors, "; "))
}
