package agent_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

// brokenBucket is a bucket whose reads fail for some calls.
type brokenBucket struct {
	*memoryBucket
	panics, remaining atomic.Int32
}

func (b *brokenBucket) Entries() (map[string]model.Entry, model.Sync) {
	if b.remaining.Load() > 0 {
		b.remaining.Add(-1)
		b.panics.Add(1)
		panic("no entries")
	}

	return b.memoryBucket.Entries()
}

// TestAPanicWhileSyncing: the agent retries after the usual delays, and not without pause.
func TestAPanicWhileSyncing(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		b := &brokenBucket{memoryBucket: n.injected()}
		n.bucket = b
		n.start()
		const key = "group.all.motd"
		b.put(key, n.assignment("expires: 2000-01-01T00:30:00Z", n.manifest("motd", "for a while")))
		n.settle()
		n.has("motd", "for a while")
		b.remaining.Store(3)
		n.after(time.Until(time.Date(2000, 1, 1, 0, 30, 0, 0, time.UTC)) + time.Millisecond)
		if got := b.panics.Load(); got != 1 {
			t.Errorf("%d panics before the first retry", got)
		}
		n.after(15 * time.Second)
		if got := n.agent.State().Manifests[key]; b.panics.Load() != 3 || got.Revision != 0 {
			t.Errorf("after %d panics the manifest is %+v", b.panics.Load(), got)
		}
	})
}
