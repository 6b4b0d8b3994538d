package desired

import (
	"context"
	"errors"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// Try returns what a value comes to on the node, as Sync does, and assigns nothing. Its bundle
// is unpacked below Options.Dir; Source and Arrived are not used. holds is false where it
// would not run, because its condition is false or it has expired. The error is model.Problems
// when trying again does not help.
func Try(ctx context.Context, o SetOptions, in Input, e model.Entry) (v *Version, holds bool, err error) {
	arrived := tasks.NewSignal()
	s := &Set{o: o, warned: newWarnings(), bundles: &Bundles{Host: o.Host, Source: o.Bundles, Dir: o.Dir, Arrived: arrived.Notify, Log: o.Log}}
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
