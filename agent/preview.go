package agent

import (
	"context"
	"path/filepath"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/desired"

	"github.com/musterfleet/muster/agent/requests"
	"github.com/musterfleet/muster/agent/runner"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// previewer creates the plans of previews. It holds the lock while it uses data of the loop.
type previewer struct {
	try       desired.SetOptions
	config    *settings
	facts     *factCache
	manifests *runner.Manifests
	running   *runner.Running
	runner    *runner.Runner
	origin    func(*manifest.Resolved) resource.Origin
}

func (a *Agent) newPreviews(o Options, trust *desired.Gate, m *runner.Manifests, running *runner.Running, runner *runner.Runner) *requests.Previews {
	p := &previewer{
		try:    desired.SetOptions{Host: o.Host, Gate: trust, Clock: o.Clock, Loader: o.Loader, Bundles: o.Bundles, Log: a.log},
		config: a.config, facts: a.facts, manifests: m, running: running, runner: runner, origin: o.Loader.Origin,
	}

	return requests.New(requests.PreviewOptions{
		Node: o.Config.Node, Log: a.log, Plan: p.plan, Untrusted: (&untrusted{report: a.report, log: a.log}).note,
		Until:   func(at time.Time) time.Duration { return o.Clock.Until(at, trust.Demands()) },
		Expired: func(at time.Time) error { return o.Clock.Expired(at, trust.Demands()) },
		Open: func(ctx context.Context, data []byte) ([]byte, error) {
			opened, err := a.config.opener(trust)(ctx, data, signed.Preview)
			if err == nil {
				err = opened.Stale
			}
			return opened.Request, err
		},
	})
}

func (p *previewer) plan(ctx context.Context, req model.PreviewRequest) (*model.Plan, error) {
	if _, err := p.facts.wait(ctx); err != nil {
		return nil, err
	}
	dir, err := p.try.Host.TempDir("preview")
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.try.Host.RemoveAll(context.WithoutCancel(ctx), dir) }() // the next start removes it
	c, try := p.config.get(), p.try
	try.Dir, try.Bundles = filepath.Join(dir, "bundles"), requests.Source(p.try.Bundles, req.ID)
	in := desired.Input{Facts: p.facts.now(), MaxDepth: c.MaxDepth, Now: time.Now()}
	key := model.Key(model.GroupFamily(model.GroupAll), req.Name)
	v, holds, err := desired.Try(ctx, try, in, model.Entry{Key: key, Value: []byte(req.Value)})
	bundle := ""
	if v != nil && v.Resolution != nil {
		bundle = v.Resolution.Dir
	}
	names := requests.NamesOf(key, req.Name, bundle)
	switch problems, is := model.FindProblems(err); {
	case is:
		return requests.Rejected(problems, names), nil
	case err != nil:
		return nil, err
	case !holds && v.When != "":
		return requests.Inactive("its condition is false"), nil
	case !holds:
		return requests.Inactive("it has expired"), nil
	}
	p.running.Lock()
	conflicts := p.manifests.View().ConflictsOf(req.Name)
	p.running.Unlock()
	if problems := conflicts(v.Resolution.Resources); len(problems) > 0 {
		return requests.Rejected(problems, names), nil
	}
	// A preview only reads and takes no lock, so the agent continues to work.
	o := p.runner.Options(ctx, ksuid.New().String(), true)
	o.Env.Scope.Dir, o.Env.Scope.Author, o.Env.Scope.Origin = v.Resolution.Dir, v.Resolution.Author(), p.origin(v.Resolution.Resolved)
	o.Grace = nil // ends a guard that runs too long
	o.Secrets, o.FailOnError = v.Resolution.Secrets, v.Resolution.FailOnError
	o.Manifest, o.Digest, o.Cause, o.CorrelationID = key, v.Digest, model.CauseManifest, req.ID
	o.Admit = func(found []*resource.Resource) error { return conflicts(found).Err() }
	var all []*model.Transaction
	o.OnTransaction = func(t *model.Transaction) { all = append(all, t) }
	run, err := engine.Reconcile(ctx, v.Resolution.Graph, o)
	if err != nil {
		return nil, err
	}

	return requests.Of(run, all, names), nil
}
