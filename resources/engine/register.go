package engine

import "github.com/musterfleet/muster/model"

// register tells what a resource registers after its turn. In a run that only
// makes health checks nothing is registered anew, but what is critical ends.
func (r *run) register(n *node, t *model.Transaction) {
	entries := n.res.Meta().RegisterWhenStable
	fell := !t.OK() || t.Skipped
	switch {
	case r.opts.Register == nil || len(entries) == 0 || t.NotRun:
	case r.isNoop(n) || r.ignoresDrift(n):
	case r.results[n.at].brokenOff && !fell:
	case fell:
		r.opts.Register(n.ref, nil)
	case !t.HealthCheckOnly:
		r.opts.Register(n.ref, entries)
	}
}
