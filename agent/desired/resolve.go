package desired

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// ErrNoFacts is transient: the facts are being gathered.
var ErrNoFacts = errors.New("the facts are not gathered yet")

// resolveCandidate finds the version of a unit that may run: the newest, or the last good one if the newest
// has an error. assigned is false if the unit does not concern this node.
func (t *turn) resolveCandidate(ctx context.Context, u *unit) (v *Version, assigned bool) {
	late := reason{}
	for _, e := range u.candidates() {
		v, holds, err := t.resolveEntry(ctx, u, e)
		if err != nil {
			why := t.handleInvalid(ctx, u, e, err)
			if u.isNewest(e) {
				late = why
			}
			continue
		}
		u.late = late
		if late.isZero() && u.stale.isZero() && u.untrusted.isZero() {
			u.retry.clear()
		}
		return v, holds
	}
	u.late = late

	return nil, true
}

// resolveEntry reads and resolves a version, unless it does not apply now.
func (t *turn) resolveEntry(ctx context.Context, u *unit, e model.Entry) (v *Version, holds bool, err error) {
	switch {
	case e.Value == nil && u.never != nil:
		return nil, false, u.never
	case e.Value == nil:
		return nil, false, u.unread
	}
	if err := t.judge(ctx, u, e); err != nil {
		return nil, false, err
	}
	err = tasks.Guard(t.o.Log, "reading "+u.key, func() error {
		if v, err = u.read(e); err != nil {
			return err
		}
		if holds, err = t.holds(ctx, v); err != nil || !holds || v.Resolution != nil {
			return err
		}
		v.Resolution, err = t.resolve(ctx, v, t.bundles.Open)
		return err
	})

	return v, holds, err
}

// holds reports whether a version applies on this node now.
func (t *turn) holds(ctx context.Context, v *Version) (holds bool, err error) {
	if !v.Expires.IsZero() && t.untilEnd(v) <= 0 {
		return false, nil
	}
	if v.When == "" {
		return true, nil
	}
	when := document.Value{Kind: document.String, Text: v.When, Pos: v.whenAt}
	err = observed(ctx, t.in.Facts.Values, func(ctx context.Context) (err error) {
		holds, err = t.o.Loader.Condition(ctx, "when", when, manifest.Inputs{Facts: t.in.Facts.Values})
		return err
	})

	return holds && err == nil, err
}

// openBundle returns the directory and the manifest of an unpacked bundle.
type openBundle func(ctx context.Context, key, digest string) (dir string, manifest []byte, err error)

// resolve creates the resources and the graph of a version. Permanent errors are model.Problems. Other errors
// are transient.
func (t *turn) resolve(ctx context.Context, v *Version, open openBundle) (*Resolution, error) {
	out := &Resolution{basis: t.in.basis()}
	text := []byte(v.Manifest)
	var err error
	if v.Bundle != "" {
		if out.Dir, text, err = open(ctx, v.Entry.Key, v.Bundle); err != nil {
			return nil, err
		}
	}
	doc, err := manifest.Parse(v.Entry.Key, text)
	if err != nil {
		return nil, err
	}
	inputs := manifest.Inputs{Data: v.Data, Dir: out.Dir, Author: out.Author(), Facts: t.in.Facts.Values, Drift: v.Drift, MaxDepth: t.in.MaxDepth}
	err = observed(ctx, inputs.Facts, func(ctx context.Context) (err error) {
		out.Resolved, err = t.o.Loader.Resolve(ctx, doc, inputs)
		return err
	})
	if err != nil {
		return nil, err
	}
	if out.Graph, err = graph.Build(out.Resources, nil); err != nil {
		return nil, err
	}
	t.warn(ctx, v, out.Warnings)
	out.Interval = shortest(v.Interval.Std(), out.Resources)
	out.monitored = slices.ContainsFunc(out.Resources, func(res *resource.Resource) bool {
		return len(res.Meta().HealthChecks) > 0 || res.Expand != nil
	})

	return out, nil
}

// warn logs the warnings of a version once.
func (t *turn) warn(ctx context.Context, v *Version, warnings model.Problems) {
	if !t.warned.isNew(v.Entry, warnings.Error()) {
		return
	}
	for _, w := range warnings {
		t.o.Log.WarnContext(ctx, "manifest", "key", v.Entry.Key, "revision", v.Entry.Revision, "warning", w.Error())
	}
}

// refresh resolves the active version of a unit again, and reports success.
func (t *turn) refresh(ctx context.Context, u *unit) bool {
	var fresh *Resolution
	err := tasks.Guard(t.o.Log, "reading "+u.key, func() (err error) {
		fresh, err = t.resolve(ctx, u.active, t.bundles.Open)
		return err
	})
	if err == nil {
		err = t.conflicts(u.key, fresh.Resources).Err()
	}
	if err != nil {
		u.stale = t.handleInvalid(ctx, u, u.active.Entry, err)
		return false
	}
	u.refreshed(fresh)

	return true
}

// observed runs f. It converts problems into a transient error if external data could not be read or facts
// are missing.
func observed(ctx context.Context, facts model.Facts, f func(context.Context) error) error {
	var seen outage
	err := f(context.WithValue(ctx, outageKey{}, &seen))
	switch {
	case err == nil:
		return nil
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case seen.err != nil:
		return fmt.Errorf("%s: %w", bounds.Problems(model.AsProblems(err)), seen.err)
	case facts == nil:
		return fmt.Errorf("%w: %s", ErrNoFacts, bounds.Problems(model.AsProblems(err)))
	default:
		return err
	}
}
