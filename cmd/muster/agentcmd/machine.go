package agentcmd

import (
	"context"

	"github.com/musterfleet/muster/agent/drift"
	"github.com/musterfleet/muster/agent/flaps"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/host/writers"
)

// armer returns what agent.Options.Watch asks for.
func armer(w *watch.Watcher) func(watch.Point, func()) (drift.Watch, error) {
	return func(p watch.Point, wake func()) (drift.Watch, error) {
		armed, err := w.Arm(p, wake)
		if err != nil {
			return nil, err // and no interface around a nil pointer
		}

		return armed, nil
	}
}

// listen is agent.Options.Writers.
func listen(ctx context.Context, paths []string) (flaps.Writers, error) {
	l, err := writers.Listen(ctx, paths)
	if err != nil {
		return nil, err // and no interface around a nil pointer
	}

	return l, nil
}
