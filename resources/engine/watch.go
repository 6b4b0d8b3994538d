package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// Watch watches, until ctx ends, for drift of those of the resources whose types
// can. It calls wake with each that may have drifted, never
// twice at a time, and ready once all watches are armed; without any it is ready
// at once. A resource that is excluded or has properties still to come is not
// watched. The watch of a type that fails ends them all, and is the error; the
// end of ctx is none.
func Watch(ctx context.Context, env resource.Env, resources []*resource.Resource, ready func(), wake func(model.Ref)) error {
	specs := map[*resource.Type][]resource.Spec{}
	for _, r := range resources {
		if r.Type.Watch != nil && r.Excluded == "" && r.Late == nil {
			specs[r.Type] = append(specs[r.Type], r.Spec)
		}
	}
	watching, end := context.WithCancelCause(ctx)
	defer end(nil)
	var all, armed sync.WaitGroup
	var one sync.Mutex
	armed.Add(len(specs))
	for typ, specs := range specs {
		once := sync.OnceFunc(armed.Done)
		all.Go(func() {
			defer once()
			err := plan.Protect(func() error {
				return typ.Watch(watching, env, specs, once, func(name string) {
					one.Lock()
					defer one.Unlock()
					wake(model.Ref{Type: typ.Name, Name: name})
				})
			})
			if watching.Err() == nil {
				end(fmt.Errorf("watching resources of type %s: %w", typ.Name, cmp.Or(err, errors.New("it ended by itself"))))
			}
		})
	}
	armed.Wait()
	if watching.Err() == nil {
		ready()
	}
	all.Wait()
	if len(specs) == 0 {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return nil
	}

	return context.Cause(watching)
}
