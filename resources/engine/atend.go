package engine

import (
	"context"
	"errors"
	"sync"
	"time"
)

// atEndTime bounds each thing that is put off to the end of a run.
const atEndTime = time.Minute

// atEnd is what types put off to the end of a run.
type atEnd struct {
	mu   sync.Mutex
	late []func(context.Context) error
}

func (a *atEnd) add(f func(context.Context) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.late = append(a.late, f)
}

// do does what was put off, in its order, unless ctx has ended. It ends ctx, as a rule, while it is
// still being done.
func (a *atEnd) do(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for _, f := range a.late {
		if ctx.Err() != nil {
			break
		}
		errs = append(errs, func() error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), atEndTime)
			defer cancel()

			return f(ctx)
		}())
	}

	return errors.Join(errs...)
}
