package agentcmd

import (
	"context"

	"github.com/musterfleet/muster/agent/drift"
	"github.com/musterfleet/muster/resources/host/writers"
)

// listen implements agent.Options.Writers.
func listen(ctx context.Context, paths []string) (drift.Writers, error) {
	l, err := writers.Listen(ctx, paths)
	if err != nil {
		return nil, err // not a non-nil interface with a nil pointer
	}

	return l, nil
}
