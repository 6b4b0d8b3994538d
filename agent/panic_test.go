package agent_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/model"
)

// panicking is a log that panics once, at a message.
type panicking struct {
	slog.Handler
	at   string
	done atomic.Bool
}

func (p *panicking) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == p.at && p.done.CompareAndSwap(false, true) {
		panic("no room for " + p.at)
	}

	return p.Handler.Handle(ctx, r)
}

// TestAPanicAtTheEndOfARun ends neither the agent nor the manifest, which runs again soon.
func TestAPanicAtTheEndOfARun(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.change = func(o *agent.Options) { o.Log = slog.New(&panicking{Handler: o.Log.Handler(), at: "run changed"}) }
		n.start()
		n.put("group.all.files", "a", "one")
		n.has("a", "one")
		if !strings.Contains(n.log.String(), "task panicked") {
			t.Error("nothing is logged of it")
		}
		n.after(n.config.Interval.Std() / 2)
		if got := n.agent.State().Manifests["group.all.files"]; got.Outcome != model.OutcomeStable {
			t.Errorf("the manifest is %+v", got)
		}
	})
}
