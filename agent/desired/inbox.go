package desired

import (
	"context"
	"sync"

	"github.com/musterfleet/muster/agent/tasks"
)

// inbox contains messages from other goroutines to the owner of the Set.
type inbox struct {
	mu       sync.Mutex
	messages []func(context.Context, *turn)
	// urgent reports whether a message woke the owner.
	urgent bool
}

// send queues a message for Handle. wake wakes the owner; other messages can wait.
func (s *Set) send(wake bool, message func(context.Context, *turn)) {
	s.inbox.mu.Lock()
	s.inbox.messages = append(s.inbox.messages, message)
	s.inbox.urgent = s.inbox.urgent || wake
	s.inbox.mu.Unlock()
	if wake {
		s.Messages.Notify()
	}
}

// HasMessages reports whether Handle has work. Any goroutine may call it.
func (s *Set) HasMessages() bool {
	s.inbox.mu.Lock()
	defer s.inbox.mu.Unlock()

	return s.inbox.urgent
}

func (b *inbox) take() []func(context.Context, *turn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.messages
	b.messages, b.urgent = nil, false

	return all
}

// Handle processes the messages from other goroutines. It reads nothing from NATS.
func (s *Set) Handle(ctx context.Context, in Input) Result {
	t := s.turn(in)
	t.handle(ctx)
	t.conclude()
	s.save(ctx)

	return t.result
}

func (t *turn) handle(ctx context.Context) {
	for _, message := range t.inbox.take() {
		message(ctx, t)
	}
}

// Applied records that a version was applied, for the next start of the agent.
func (s *Set) Applied(v *Version) {
	s.send(true, func(_ context.Context, t *turn) {
		if u := t.activeUnit(v); u != nil && u.record.Applied != v.sum {
			u.record.Applied, u.unsaved = v.sum, true
		}
	})
}

// Restore asks to download the damaged bundle of a version again. Handle or Sync lists the key as
// Restored when its runs need not wait any longer, even if the bundle is still damaged.
func (s *Set) Restore(v *Version) {
	s.send(true, func(ctx context.Context, t *turn) {
		u := t.activeUnit(v)
		if u == nil {
			return
		}
		t.result.Changed = true
		if err := t.bundles.Restore(ctx, u.key, u.active.Bundle); err != nil {
			u.stale = reasonOf(err)
			return
		}
		t.refresh(ctx, u)
		t.result.Restored = append(t.result.Restored, u.key)
	})
}

// Resolve resolves an active version again. Any goroutine may call it. The caller passes the result
// to Resolved.
func (s *Set) Resolve(ctx context.Context, v Version, in Input) (fresh *Resolution, err error) {
	unpacked := func(context.Context, string, string) (string, []byte, error) {
		text, err := ReadManifest(v.Resolution.Dir)
		return v.Resolution.Dir, text, err
	}
	err = tasks.Guard(s.o.Log, "reading "+v.Entry.Key, func() (err error) {
		fresh, err = (&turn{Set: s, in: in}).resolve(ctx, &v, unpacked)
		return err
	})

	return fresh, err
}

// Resolved sends the result of Resolve for a version to the owner.
func (s *Set) Resolved(v *Version, fresh *Resolution, err error) {
	s.send(err != nil, func(ctx context.Context, t *turn) {
		u := t.activeUnit(v)
		switch {
		case u == nil:
		case err != nil:
			u.stale = t.handleInvalid(ctx, u, u.active.Entry, err)
			t.result.Changed = true
		default:
			t.result.Changed = t.result.Changed || !u.stale.isZero()
			u.refreshed(fresh)
		}
	})
}

// activeUnit returns the unit in which a version is active, nil for none.
func (s *Set) activeUnit(v *Version) *unit {
	if u := s.units[v.Entry.Key]; u != nil && u.active.sameAs(v) {
		return u
	}

	return nil
}
