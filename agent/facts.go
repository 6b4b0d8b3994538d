package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// errNoFacts may pass: the facts are being gathered.
var errNoFacts = errors.New("the facts are not gathered yet")

// factBox holds the facts as they were gathered last.
type factBox struct {
	ready chan struct{} // closed with the first facts
	once  sync.Once

	mu     sync.Mutex
	facts  model.Facts
	digest string
}

func (b *factBox) stable() (model.Facts, string) {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.facts, b.digest
}

// Facts gives the facts as they were gathered last, waiting for the first.
func (a *Agent) Facts(ctx context.Context) (model.Facts, error) {
	select {
	case <-a.facts.ready:
	case <-ctx.Done():
		return nil, errors.Join(errNoFacts, context.Cause(ctx))
	}
	facts, _ := a.facts.stable()

	return facts, nil
}

// gather gathers facts at start and on the interval. When what is stable of
// them changes they are published, and the assignments looked at again, because
// whether one holds may depend on them.
func (a *Agent) gather(ctx context.Context) error {
	for ctx.Err() == nil {
		a.gatherOnce(ctx)
		tasks.Pause(ctx, tasks.Spread(a.Config().Interval.Std(), tasks.Jitter), nil)
	}

	return nil
}

func (a *Agent) gatherOnce(ctx context.Context) {
	facts := model.Facts{}
	if a.opts.Facts != nil {
		var errs []error
		facts, errs = a.opts.Facts(ctx, a.Config().FactsDir)
		for _, err := range errs {
			a.log.WarnContext(ctx, "some facts are missing", "error", err)
		}
	}
	digest := "none"
	if a.opts.StableFacts != nil {
		digest = a.opts.StableFacts(facts)
	}
	a.facts.mu.Lock()
	changed := a.facts.digest != digest
	a.facts.facts, a.facts.digest = facts, digest
	a.facts.mu.Unlock()
	a.facts.once.Do(func() { close(a.facts.ready) })
	if changed {
		a.said.Notify()
		a.queue.assignmentsChanged()
	}
}

// factsNow gives the facts for a run.
func (a *Agent) factsNow() model.Facts {
	facts, _ := a.facts.stable()

	return facts
}

// soon is how long the agent waits at start for what it needs to judge its
// assignments: the facts, and the bucket.
const soon = 10 * time.Second
