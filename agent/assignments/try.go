package assignments

import (
	"context"
	"errors"

	"github.com/musterfleet/muster/agent/assignments/bundles"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/resource"
)

// Try returns what a value comes to on the node, as Sync does, and assigns nothing. Its bundle
// is unpacked below Options.Dir; Source and Arrived are not used. holds is false where it
// would not run, because its condition is false or it has expired. The error is model.Problems
// when trying again does not help.
func Try(ctx context.Context, o Options, in Input, e model.Entry) (v *Version, holds bool, err error) {
	arrived := tasks.NewSignal()
	s := &Set{o: o, bundles: &bundles.Store{Host: o.Host, Source: o.Bundles, Dir: o.Dir, Arrived: arrived.Notify, Log: o.Log}}
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
		v.Resolution, err = t.resolve(ctx, v)
		if !errors.Is(err, bundles.ErrFetching) {
			return v, true, err
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return v, true, context.Cause(ctx)
		}
	}
}

// ConflictsOf returns the resources that an active manifest of another name declares
// differently.
func (s *Set) ConflictsOf(name string) func([]*resource.Resource) model.Problems {
	taken := graph.Claims{}
	for _, u := range s.order {
		if u.name != name {
			taken.Add(u.key, u.active.Resolution.Resources)
		}
	}

	return taken.Conflicts
}
