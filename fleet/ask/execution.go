package ask

import (
	"context"

	"github.com/musterfleet/muster/model"
)

// execution does one action on some nodes, and notes what comes of it.
type execution struct {
	ExecutorOptions
	registry *registry
	record   *record
	nodes    []model.Node
}

// do does it, to its end.
func (e *execution) do(ctx context.Context) error {
	switch e.record.Kind {
	case Preview:
		return e.preview(ctx)
	case Run:
		return e.run(ctx)
	default:
		return e.write(ctx)
	}
}

// note adds what whoever acts should know.
func (e *execution) note(text string) { e.registry.note(e.record, text) }

// set notes what came of it on a node.
func (e *execution) set(r Result) { e.registry.set(e.record, r) }
