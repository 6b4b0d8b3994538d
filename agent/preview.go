package agent

import (
	"context"
	"path/filepath"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/desired"

	"github.com/musterfleet/muster/agent/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/resource"
)

// newPreviews returns the service that answers previews.
func (a *Agent) newPreviews(o Options, trust *desired.Gate) *requests.Previews {
	try := desired.SetOptions{Host: o.Host, Gate: trust, Clock: o.Clock, Loader: o.Loader, Bundles: o.Bundles, Log: a.log}

	return requests.New(requests.PreviewOptions{
		Node: o.Config.Node, Log: a.log, Plan: func(ctx context.Context, req model.PreviewRequest) (*model.Plan, error) {
			return a.plan(ctx, o.Loader, try, req)
		}, Untrusted: (&untrusted{report: a.report, log: a.log}).note,
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

// plan returns the changes that the assignment of a preview would make. It holds the lock while it uses data of
// the loop.
func (a *Agent) plan(ctx context.Context, loader Loader, try desired.SetOptions, req model.PreviewRequest) (*model.Plan, error) {
	if _, err := a.facts.wait(ctx); err != nil {
		return nil, err
	}
	dir, err := try.Host.TempDir("preview")
	if err != nil {
		return nil, err
	}
	defer func() { _ = try.Host.RemoveAll(context.WithoutCancel(ctx), dir) }() // the next start removes it
	c := a.config.get()
	try.Dir, try.Bundles = filepath.Join(dir, "bundles"), requests.Source(try.Bundles, req.ID)
	in := desired.Input{Facts: a.facts.now(), MaxDepth: c.MaxDepth, Now: time.Now()}
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
	a.loop.running.Lock()
	conflicts := a.loop.manifests.View().ConflictsOf(req.Name)
	a.loop.running.Unlock()
	if problems := conflicts(v.Resolution.Resources); len(problems) > 0 {
		return requests.Rejected(problems, names), nil
	}
	// A preview only reads and takes no lock, so the agent continues to work.
	o := a.loop.runner.Options(ctx, ksuid.New().String(), true)
	o.Env.Scope.Dir, o.Env.Scope.Author, o.Env.Scope.Origin = v.Resolution.Dir, v.Resolution.Author(), loader.Origin(v.Resolution.Resolved)
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
