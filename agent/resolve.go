package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// read gives the loaded form of an entry, read once. The error is model.Problems.
func (u *unit) read(e model.Entry) (*loaded, error) {
	v := version{e.Revision, model.DigestOf(e.Value)}
	if l, ok := u.versions[v]; ok {
		return l, nil
	}
	a, problems := parseAssignment(e)
	if len(problems) > 0 {
		return nil, problems
	}
	l := &loaded{assignment: a}
	u.versions[v] = l

	return l, nil
}

// applies says whether an assignment holds on this node now.
func (r *runner) applies(ctx context.Context, l *loaded) (holds bool, err error) {
	if l.expired(time.Now()) {
		return false, nil
	}
	if l.When == "" {
		return true, nil
	}
	when := resource.Value{Kind: resource.String, Text: l.When, Pos: l.whenAt}
	err = r.observed(ctx, func(ctx context.Context) (err error) {
		holds, err = r.opts.Loader.Condition(ctx, "when", when, manifest.Inputs{Facts: r.factsNow()})
		return err
	})

	return holds && err == nil, err
}

// resolveOnce resolves a version, but not again one that is known to be wrong
// while the facts are what they were.
func (r *runner) resolveOnce(ctx context.Context, l *loaded) error {
	_, digest := r.facts.stable()
	if l.refused != nil && l.refusedBy == digest {
		return l.refused
	}
	err := r.resolve(ctx, l)
	l.refused, l.refusedBy = nil, digest
	if _, never := neverValid(err); never {
		l.refused = err
	}

	return err
}

// resolve makes the graph of a version. The error is model.Problems when it
// never becomes valid by trying again; another one may pass.
func (r *runner) resolve(ctx context.Context, l *loaded) error {
	text := []byte(l.Manifest)
	if l.Bundle != "" {
		var err error
		if l.dir, text, err = r.bundles.open(ctx, l.entry.Key, l.Bundle); err != nil {
			return err
		}
	}
	doc, err := manifest.Parse(l.entry.Key, text)
	if err != nil {
		return err
	}
	var resolved *manifest.Resolved
	err = r.observed(ctx, func(ctx context.Context) (err error) {
		resolved, err = r.opts.Loader.Resolve(ctx, doc, manifest.Inputs{Data: l.Data, Dir: l.dir, Facts: r.factsNow(), Drift: l.Drift, MaxDepth: r.Config().MaxDepth})
		return err
	})
	if err != nil {
		return err
	}
	graph, err := graph.Build(resolved.Resources, nil)
	if err != nil {
		return err
	}
	// Once for a revision: what warns of each run is soon read by nobody.
	if said := resolved.Warnings.Error(); said != l.warned {
		for _, w := range resolved.Warnings {
			r.log.WarnContext(ctx, "manifest", "key", l.entry.Key, "revision", l.entry.Revision, "warning", w.Error())
		}
		l.warned = said
	}
	l.resolved, l.graph, l.interval = resolved, graph, shortest(l.Interval.Std(), resolved.Resources)

	return nil
}

// observed runs f, and makes an error that may pass of problems that come from
// something outside that could not be read, or from facts that are not there yet.
func (r *runner) observed(ctx context.Context, f func(context.Context) error) error {
	var seen outage
	err := f(context.WithValue(ctx, outageKey{}, &seen))
	switch {
	case err == nil:
		return nil
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case seen.err != nil:
		return fmt.Errorf("%s: %w", bounds.Problems(model.AsProblems(err)), seen.err)
	case r.factsNow() == nil:
		return fmt.Errorf("%w: %s", errNoFacts, bounds.Problems(model.AsProblems(err)))
	default:
		return err
	}
}

// neverValid gives the problems of an error that trying again does not mend.
func neverValid(err error) (model.Problems, bool) {
	var all model.Problems
	if errors.As(err, &all) {
		return all, true
	}
	var one model.Problem
	if errors.As(err, &one) {
		return model.Problems{one}, true
	}

	return nil, false
}
