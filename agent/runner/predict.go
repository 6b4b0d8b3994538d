package runner

import (
	"context"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/resource"
)

// prediction is a requested noop run of one manifest. It is reported and does not change the state of
// the manifest.
type prediction struct {
	*Manifests
	hard  context.Context
	asked *asked
	key   string
	id    string
	// version is the version that runs. release releases its bundle.
	version *desired.Version
	release func()
}

// predict starts noop runs of manifests, one after the other. The caller holds the lock.
func (m *Manifests) predict(ctx, hard context.Context, a *asked, keys []string) {
	if len(keys) == 0 {
		return
	}
	p := &prediction{Manifests: m, hard: hard, asked: a, key: keys[0], id: ksuid.New().String()}
	p.version = m.view.Active(p.key)
	if p.version == nil {
		m.finish(a, model.RequestedRun{Manifest: p.key}, errInactive)
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
		m.o.Running.Do(func() { m.predict(ctx, hard, a, keys[1:]) })
	})
}

// options returns the options of the run.
func (p *prediction) options() engine.ReconcileOptions {
	o := options(p.hard, p.o.Runner, p.key, p.version, true, model.CauseRequest, p.id)
	o.CorrelationID = p.asked.ID
	o.Journal = p.sharedOf(p.key).journal
	conflicts := p.view.Conflicts(p.key)
	o.Admit = func(found []*resource.Resource) error { return conflicts(found).Err() }

	return o
}

// run makes the run and reports it. The summary is nil if the run did not complete.
func (p *prediction) run(ctx context.Context, lane *Lane, o engine.ReconcileOptions) (*model.Run, error) {
	summary, err := p.o.Runner.Run(ctx, lane, o, p.prepare)
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

// prepare returns the graph of the active version.
func (p *prediction) prepare(ctx context.Context, _ bool) (Prepared, error) {
	var v *desired.Version
	p.o.Running.Do(func() { v = p.view.Active(p.key) })
	if v == nil {
		return Prepared{}, errInactive
	}
	p.refresh(ctx, v, false)
	p.version = v
	var resolution *desired.Resolution
	p.o.Running.Do(func() { resolution = v.Resolution })

	return Prepared{
		Graph:   resolution.Graph,
		IsValid: func() bool { return p.view.Active(p.key) == v && v.Resolution == resolution },
		Begin: func() engine.Options {
			p.release = p.o.Set.Hold(v.Bundle)
			o := p.options()
			o.OnTransaction = func(t *model.Transaction) {
				LogTransaction(ctx, p.o.Log, t)
				p.o.Report.Transaction(t)
			}
			return o.Options
		},
		Began: func() error {
			p.asked.begin()
			return nil
		},
	}, p.asked.MayBegin()
}
