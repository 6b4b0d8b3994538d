package runner

import (
	"context"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/desired"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/resource"
)

// prediction is the run in noop of one manifest that somebody asked for. It is reported, and
// nothing else follows from it: the state of the manifest is that of its runs.
type prediction struct {
	*Manifests
	hard  context.Context
	asked *asked
	key   string
	id    string
	// version is what runs, release ends that it is kept.
	version *desired.Version
	release func()
}

// predict runs manifests in noop, one after the other.
func (m *Manifests) predict(ctx, hard context.Context, a *asked, keys []string) {
	if len(keys) == 0 {
		return
	}
	p := &prediction{Manifests: m, hard: hard, asked: a, key: keys[0], id: ksuid.New().String()}
	p.version = m.view.Active(p.key)
	if p.version == nil {
		a.done(model.RequestedRun{Manifest: p.key}, errInactive)
		m.predict(ctx, hard, a, keys[1:])
		return
	}
	o := p.options()
	m.o.Running.Begin(Request, "", nil, func(lane *Lane) {
		summary, err := p.run(ctx, lane, o)
		if summary == nil && ctx.Err() != nil {
			return
		}
		result := model.RequestedRun{Manifest: p.key}
		if summary != nil {
			result, err = requested(summary), nil
		}
		a.done(result, err)
		m.o.Running.Lock()
		defer m.o.Running.Unlock()
		m.predict(ctx, hard, a, keys[1:])
	})
}

// options are those of the run.
func (p *prediction) options() engine.ReconcileOptions {
	o := options(p.hard, p.o.Runner, p.key, p.version, true, model.CauseRequest, p.id)
	o.CorrelationID = p.asked.ID
	o.Journal = p.keptOf(p.key).journal
	conflicts := p.view.Conflicts(p.key)
	o.Admit = func(found []*resource.Resource) error { return conflicts(found).Err() }

	return o
}

// activeNow returns the active version, nil for none. The turn is not held.
func (p *prediction) activeNow() (v *desired.Version) {
	p.inTurn(func() { v = p.view.Active(p.key) })

	return v
}

// run makes the run, and reports it. The summary is nil where it did not come to its end.
func (p *prediction) run(ctx context.Context, lane *Lane, o engine.ReconcileOptions) (*model.Run, error) {
	o.Locked = func(ctx context.Context, o *engine.ReconcileOptions) (*graph.Graph, error) {
		prepare := func() (*graph.Graph, Holds, error) {
			v := p.activeNow()
			if v == nil {
				return nil, nil, errInactive
			}
			p.refresh(ctx, v, false)
			p.version = v
			var resolution *desired.Resolution
			p.inTurn(func() { resolution = v.Resolution })
			holds := func() bool { return p.view.Active(p.key) == v && v.Resolution == resolution }
			return resolution.Graph, holds, p.asked.MayBegin()
		}
		g, err := p.o.Runner.Await(ctx, p.id, lane, prepare, func(*graph.Graph) {
			p.release = p.o.Set.Hold(p.version.Bundle)
			engine := p.options()
			engine.OnTransaction = func(t *model.Transaction) {
				LogTransaction(ctx, p.o.Log, t)
				p.o.Running.Lock()
				defer p.o.Running.Unlock()
				p.o.Report.Transaction(t)
			}
			o.Options = engine.Options
		})
		if err == nil {
			p.asked.begin()
		}
		return g, err
	}
	summary, err := p.o.Runner.Run(ctx, lane, nil, o)
	p.o.Running.Lock()
	defer p.o.Running.Unlock()
	defer p.o.Report.End(p.id)
	if p.release != nil {
		defer p.release()
	}
	if summary != nil {
		if err != nil {
			summary.Errors = append(summary.Errors, err.Error())
		}
		p.o.Report.Run(summary)
		LogRun(ctx, p.o.Log, summary)
		p.count(p.key, summary)
	}

	return summary, err
}
