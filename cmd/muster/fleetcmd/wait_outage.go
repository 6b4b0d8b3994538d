package fleetcmd

import (
	"context"
	"time"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore"
)

// outagePause is the pause before what failed in an outage of NATS is tried again.
const outagePause = 500 * time.Millisecond

// outage lets a wait go on over outages of NATS, each of which it says once.
type outage struct {
	print.Printer
	line *print.Progress
	name string
	// isAway is that one was said and is not over.
	isAway bool
}

// newOutage returns what says outages while name is waited for.
func newOutage(p print.Printer, name string) *outage {
	return &outage{Printer: p, line: p.Progress(), name: name}
}

// isTransient reports whether an error may pass by itself, and there is time for that.
func (o *outage) isTransient(limit context.Context, err error) bool {
	is := kvstore.IsOutage(err) && limit.Err() == nil
	if is && !o.isAway {
		o.line.Clear()
		o.Remark("%s: NATS does not answer, still waiting (%v)", o.name, cli.Plain(err))
	}
	o.isAway = is

	return is
}

// again calls f until its error is none that may pass by itself. The error is the last one.
func (o *outage) again(limit context.Context, f func() error) error {
	for {
		err := f()
		if err == nil {
			o.isAway = false
			return nil
		}
		if !o.isTransient(limit, err) {
			return err
		}
		select {
		case <-limit.Done():
			return err
		case <-time.After(outagePause):
		}
	}
}
