package engine

import (
	"context"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
)

// Run runs a graph without the run lock.
func Run(ctx context.Context, g *plan.Graph, opts Options) *model.Run {
	return newRun(g, opts).do(ctx)
}
