package desired

import (
	"context"
	"errors"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// Try resolves a value on the node like Sync, without assigning it. It unpacks a bundle below Options.Dir,
// and does not use Source and Arrived. holds is false if the manifest would not run, because its condition is
// false or it has expired. Permanent errors are model.Problems.
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
