package desired

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/host/paths"
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
	inputs := manifest.Inputs{Data: v.Data, Dir: out.Dir, Author: out.Author(), Facts: t.in.Facts.Values, Drift: v.Drift, MaxDepth: t.in.MaxDepth, RunOnly: true}
	err = observed(ctx, inputs.Facts, func(ctx context.Context) (err error) {
		out.Resolved, err = t.o.Loader.Resolve(ctx, doc, inputs)
		return err
	})
	if err != nil {
		return nil, err
	}
	if out.Graph, err = plan.Build(out.Resources, nil); err != nil {
		return nil, err
	}
	out.Interval = shortest(v.Interval.Std(), out.Resources)
	out.monitored = slices.ContainsFunc(out.Resources, func(res *resource.Resource) bool {
		return len(res.Meta().HealthChecks) > 0 || res.Expand != nil
	})

	return out, nil
}

func (t *turn) refresh(ctx context.Context, u *unit) bool {
	var fresh *Resolution
	err := tasks.Guard(t.o.Log, "reading "+u.key, func() (err error) {
		fresh, err = t.resolve(ctx, u.active, t.bundles.Open)
		return err
	})
	if err == nil {
		err = t.View().Conflicts(u.key)(fresh.Resources).Err()
	}
	if err != nil {
		u.stale = t.handleInvalid(ctx, u, u.active.Entry, err)
		return false
	}
	u.refreshed(ctx, t.o.Log, fresh)

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

// Version is a read revision of an assignment. Its Digest is the digest of the manifest or bundle.
type Version struct {
	Entry model.Entry
	model.Assignment
	// Resolution is its last resolution, nil before the first.
	Resolution *Resolution

	sum    string
	whenAt model.Position
}

// Resolution is the result of resolving a version on this node.
type Resolution struct {
	*manifest.Resolved
	Graph *plan.Graph
	// Dir is the directory of its bundle, if it is one.
	Dir string
	// Interval is the time between its runs; zero uses the configuration.
	Interval time.Duration

	// monitored means that a resource has health checks or may get them.
	monitored bool
	// basis is the input of the resolution. used means that a run was made from it.
	basis basis
	used  bool
}

// Author returns the user who may change the files that the manifest names: any writer of the bucket. The
// unpacked bundle is private.
func (r *Resolution) Author() paths.Author { return paths.Author{Private: r.Dir} }

// basis is compared to find out whether a manifest that reads more than its text may now resolve differently.
type basis struct {
	// facts is the number of times that the facts were gathered, changes the number of times that this agent
	// changed the machine.
	facts, changes int
	at             time.Time
}

// freshFor is the time during which data from outside the node counts as unchanged. It covers the time from a
// put to its run.
const freshFor = 5 * time.Second

// Use reports whether the resolution is valid for a run that begins now: it depends only on the text of the
// manifest, or its inputs cannot have changed. The next run needs a newer one.
func (r *Resolution) Use(in Input) (valid bool) {
	now, used := in.basis(), r.used
	r.used = true

	return r.Static || !used && r.basis.facts == now.facts && r.basis.changes == now.changes && now.at.Sub(r.basis.at) < freshFor
}

func (r *Resolution) isDamaged() bool { return r.Dir != "" && !IsIntact(r.Dir) }

// Damaged reports whether the version is a bundle with changed or missing files.
func (v *Version) Damaged() bool { return v.Resolution.isDamaged() }

// AddLate adds resources that a run discovered. The shortest poll becomes the interval.
func (v *Version) AddLate(found []*resource.Resource) {
	r := *v.Resolution
	r.Interval = shortest(r.Interval, found)
	v.Resolution = &r
}

// Monitored reports whether health checks of the version run between its runs.
func (v *Version) Monitored() bool { return !v.Noop && v.Resolution.monitored }

// Registers returns the resources that register services, and reports whether the run may find others.
func (v *Version) Registers() (refs []model.Ref, open bool) {
	for _, res := range v.Resolution.Resources {
		if len(res.Meta().RegisterWhenStable) > 0 {
			refs = append(refs, res.Ref())
		}
		open = open || res.Expand != nil
	}

	return refs, open
}

func (v *Version) sameAs(other *Version) bool {
	return v != nil && other != nil && v.is(other.Entry.Revision, other.sum)
}

func (v *Version) is(revision uint64, sum string) bool {
	return v.Entry.Revision == revision && v.sum == sum
}

// shortest returns the smallest of an interval, zero for none, and the polls of resources.
func shortest(out time.Duration, resources []*resource.Resource) time.Duration {
	for _, r := range resources {
		if poll := r.Meta().Poll.Std(); poll > 0 && (out == 0 || poll < out) {
			out = poll
		}
	}
	if out > 0 {
		out = max(out, time.Second)
	}

	return out
}

// parse parses the value of an entry. The gate verifies its signatures. The problems are permanent.
func parse(e model.Entry) (*Version, model.Problems) {
	if e.Refused != "" {
		return nil, model.Problems{{Pos: model.Position{File: e.Key, Line: 1, Column: 1}, Message: e.Refused}}
	}
	value, problems := document.DecodeAssigned(e.Key, e.Value)
	if problems != nil {
		return nil, problems
	}
	v := &Version{Entry: e, Assignment: value.Assignment, sum: model.DigestOf(e.Value), whenAt: value.WhenAt}
	v.Digest = v.ContentDigest()

	return v, nil
}

type outageKey struct{}

// outage records failed reads of data from outside the node.
type outage struct{ err error }

func observeOutage[T any](ctx context.Context, value T, err error) (T, error) {
	if o, ok := ctx.Value(outageKey{}).(*outage); ok && err != nil {
		o.err = err
	}

	return value, err
}

// ObserveRegistrations wraps the function by which a Loader reads registrations, like ObserveKV.
func ObserveRegistrations(get manifest.ReadRegistrations) manifest.ReadRegistrations {
	return func(ctx context.Context, cluster, protocol, service, address string) ([]registration.Registration, error) {
		found, err := get(ctx, cluster, protocol, service, address)
		return observeOutage(ctx, found, err)
	}
}

// ObserveKV wraps the function by which a Loader reads keys. It distinguishes an invalid manifest from a
// manifest whose data could not be read.
func ObserveKV(get func(ctx context.Context, bucket, key string) ([]byte, error)) func(ctx context.Context, bucket, key string) ([]byte, error) {
	return func(ctx context.Context, bucket, key string) ([]byte, error) {
		value, err := get(ctx, bucket, key)
		return observeOutage(ctx, value, err)
	}
}

// Try resolves a value on the node like Sync, without assigning it. It unpacks a bundle below Options.Dir,
// and does not use Source and Arrived. holds is false if the manifest would not run, because its condition is
// false or it has expired. Permanent errors are model.Problems.
func Try(ctx context.Context, o SetOptions, in Input, e model.Entry) (v *Version, holds bool, err error) {
	arrived := tasks.NewSignal()
	s := &Set{o: o, bundles: &Bundles{Host: o.Host, Source: o.Bundles, Dir: o.Dir, Arrived: arrived.Notify, Log: o.Log}}
	defer s.bundles.Close(context.WithoutCancel(ctx))
	v, problems := parse(e)
	if problems != nil {
		return nil, false, problems
	}
	t := &turn{Set: s, in: in}
	if holds, err = t.holds(ctx, v); err != nil || !holds {
		return v, false, err
	}
	for {
		v.Resolution, err = t.resolve(ctx, v, t.bundles.Open)
		if !errors.Is(err, ErrFetching) {
			return v, true, err
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return v, true, context.Cause(ctx)
		}
	}
}
