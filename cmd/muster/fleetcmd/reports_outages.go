package fleetcmd

import (
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/cmd/muster/print"
)

// sayOutages says when the connection is lost, and when it is back, until stop is called: whoever follows would take
// an outage for a fleet in which nothing happens.
func sayOutages(p print.Printer, nc *nats.Conn) (stop func()) {
	changed := nc.StatusChanged(nats.RECONNECTING, nats.CONNECTED)
	ended := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		isAway := false
		for {
			select {
			case status, open := <-changed:
				if !open {
					return
				}
				if away := status == nats.RECONNECTING; away != isAway {
					isAway = away
					if away {
						p.Remark("NATS cannot be reached: reports that arrive meanwhile are shown once it is back")
					} else {
						p.Remark("NATS can be reached again")
					}
				}
			case <-ended:
				return
			}
		}
	})

	return func() {
		nc.RemoveStatusListener(changed)
		close(ended)
		all.Wait()
	}
}
