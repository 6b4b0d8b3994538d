package ask

import (
	"context"

	"github.com/musterfleet/muster/model"
)

// execution runs one action on nodes and records the results.
type execution struct {
	ExecutorOptions
	registry *registry
	record   *record
	nodes    []model.Node
}

// do runs the action until it ends.
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

// note adds a note for the user.
func (e *execution) note(text string) { e.registry.note(e.record, text) }

// set records the result of a node.
func (e *execution) set(r Result) { e.registry.set(e.record, r) }
