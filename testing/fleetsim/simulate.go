package fleetsim

import (
	"context"
	"testing"

	"github.com/musterfleet/muster/cmd/muster/fleetcmd"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/resources"
)

// Simulate plays a fleet like muster fleet simulate until the test ends, and returns when all nodes have
// joined. Its connections use an administrator; it sets Types and Open of the options.
func Simulate(tb testing.TB, admin connect.Options, o fleetcmd.SimulateOptions) *fleetcmd.SimulatedFleet {
	tb.Helper()
	o.Types = resources.All()
	o.Open = func(ctx context.Context, onStatus func(connect.Status)) (*kvstore.Store, error) {
		own := admin
		own.OnStatus = onStatus
		return kvstore.Open(ctx, own, "")
	}
	f, err := fleetcmd.NewSimulation(o)
	if err != nil {
		tb.Fatal(err)
	}
	joined, ended := make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	go func() { ended <- f.Run(ctx, func() { close(joined) }) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
		f.Close()
	})
	select {
	case <-joined:
	case err := <-ended:
		ended <- nil
		tb.Fatal(err)
	}

	return f
}
