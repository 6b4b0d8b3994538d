package fleetcmd

import (
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/cmd/muster/print"
)

// sayOutages prints when the connection is lost and restored, until stop is called. Without it an outage
// looks like a quiet fleet.
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
						p.Remark("NATS is unreachable; new reports follow after the reconnect")
					} else {
						p.Remark("NATS is reachable again")
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
