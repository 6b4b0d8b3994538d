package agent

import (
	"context"

	"github.com/musterfleet/muster/agent/status"
)

// listenForScrapes makes metrics, and opens the address where they are served, if the
// configuration names one.
func (a *Agent) listenForScrapes(ctx context.Context, o Options) error {
	network, address, err := o.Config.Metrics.Address()
	if network == "" {
		return err
	}
	m := status.NewMetrics(status.Sources{
		State: a.status.Unbounded, Connection: o.Connection, Outbox: a.outbox.Stats, Requests: a.loop.requests.Ended, Log: a.log,
	})
	a.loop.manifests.Ran = m.Ran
	a.metrics, err = status.ListenMetrics(ctx, o.Host, network, address, m)

	return err
}
