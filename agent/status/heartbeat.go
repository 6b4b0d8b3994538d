package status

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/telemetry"
)

// factsEvery is the number of heartbeats after which unchanged facts are stored again, because the store may
// have lost them.
const factsEvery = 10

// duplicateGone is the number of heartbeats without a state of another agent with this id after which that
// agent counts as gone.
const duplicateGone = 3

// maxRetry limits the wait between two attempts, because the server sends no event when a full store has room
// again.
const maxRetry = 10 * time.Second

// Store stores the state and the facts of nodes.
type Store interface {
	// PutState stores the state. After ttl without another state, the node counts as unreachable.
	PutState(ctx context.Context, state model.NodeState, ttl time.Duration) error
	// PutFacts stores the facts. The error wraps model.ErrTooLarge if they are too large.
	PutFacts(ctx context.Context, node string, facts model.Facts) error
	// MaxMessage returns the maximum size of a state in bytes, zero while it is unknown.
	MaxMessage() int64
	// State returns the stored state. Another agent with the same id may have stored it.
	State(ctx context.Context, node string) (model.Node, error)
}

// Heartbeat stores the state and the facts of the node after changes and at intervals.
type Heartbeat struct {
	Store Store
	Node  *Node
	// Facts returns the facts and the digest of the stable ones.
	Facts func() (values model.Facts, stable string)
	// Duplicate reports another agent that runs as this node.
	Duplicate func(message string)
	// Clock is measured by the times at which the server stores the state. ClockMoved is called after a
	// change of the offset.
	Clock      *Clock
	ClockMoved func()
	// Inspect is called before each use of the state; it may be nil.
	Inspect func()
	// Connected wakes it after a reconnect, Drained when the outbox is empty.
	Connected, Drained tasks.Signal
	Log                *slog.Logger

	stored stored
	sent   sent
	// moves logs changes of the clock's offset. The server can cause these messages.
	moves telemetry.RateLimitedLog
	// tooLarge is the digest of the facts that were too large, empty for none.
	tooLarge string
	// held is the time at which a change that waits for its run is stored at the latest; zero means
	// that no change waits.
	held time.Time
	// duplicateAt is the time when another agent with this id was last seen.
	duplicateAt time.Time
	// checkAt is the time from which the next stored state checks for another agent with this id. State
	// changes postpone the heartbeat, but not this check.
	checkAt time.Time
}

// stored describes the stored data of the node, as far as the agent knows.
type stored struct {
	// state and facts are the last stored data; empty means that they must be stored.
	state, facts string
	// waiting means that the state counts waiting reports. It is outdated when they are published.
	waiting bool
	// any means that this agent has stored a state.
	any bool
	// beat and factsBeat are the times when unchanged data is stored again.
	beat, factsBeat time.Time
}

// Run stores changes until ctx ends. It logs a lasting failure once.
func (h *Heartbeat) Run(ctx context.Context) error {
	var wait tasks.Backoff
	var retry time.Time
	failing := false
	for {
		at := h.stored.beat
		if !retry.IsZero() {
			at = retry
		} else if !h.held.IsZero() {
			at = model.EarlierTime(at, h.held)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(at)):
		case <-h.Node.Changed:
			if h.hold(time.Now()) {
				continue
			}
		case <-h.Drained:
			if !h.stored.waiting && h.held.IsZero() || h.hold(time.Now()) {
				continue
			}
		case <-h.Connected:
			// The store may have been replaced or emptied.
			h.stored.state, h.stored.facts = "", ""
			h.sent.asked = false
			wait.Reset()
		}
		if err := h.once(ctx); err != nil {
			d := min(wait.Next(), h.every(), maxRetry)
			retry = time.Now().Add(d)
			level := slog.LevelDebug
			if !failing && ctx.Err() == nil {
				failing, level = true, slog.LevelWarn
			}
			h.Log.Log(ctx, level, "cannot store node state, will retry", "error", err, "retry", d)
			if ctx.Err() == nil {
				h.Node.SetUnstored(model.UnstoredState, err)
			}
			continue
		}
		h.Node.SetUnstored(model.UnstoredState, nil)
		failing = false
		wait.Reset()
		retry = time.Time{}
	}
}

// longestHold limits how long a changed state waits for a run and its reports.
const longestHold = time.Second

// hold reports whether a changed state waits until the run of a new revision has ended and its
// reports are published. So a push costs one write of the state.
func (h *Heartbeat) hold(now time.Time) bool {
	if !h.stored.any || !h.Node.awaitsRun() && h.Node.waiting() == 0 {
		h.held = time.Time{}
		return false
	}
	if h.held.IsZero() {
		h.held = now.Add(longestHold)
	}

	return now.Before(h.held)
}

// once stores state and facts unless they are unchanged.
func (h *Heartbeat) once(ctx context.Context) error {
	now, next := time.Now(), h.stretch(h.every())
	h.held = time.Time{}
	// A shorter heartbeat takes effect immediately.
	h.stored.beat = model.EarlierTime(h.stored.beat, now.Add(next))
	if h.Inspect != nil {
		h.Inspect()
	}
	state := h.Node.State()
	drained := h.stored.waiting && state.Outbox == 0
	due := !now.Before(h.stored.beat)
	if essence(state) != h.stored.state || drained || due {
		switch {
		case !h.stored.any:
			h.recall(ctx)
		case due || !now.Before(h.checkAt):
			h.checkDuplicate(ctx)
		}
		if due || !now.Before(h.checkAt) {
			h.checkAt = now.Add(next)
		}
		state = h.Node.State()
		if err := h.put(ctx, state); err != nil {
			return err
		}
		h.stored.state, h.stored.waiting, h.stored.any = essence(state), state.Outbox > 0, true
		h.stored.beat = now.Add(h.stretch(h.every())) // by the size of the new state
		h.measureNow(ctx)
	}
	facts, stable := h.Facts()
	if stable == "" || (stable == h.stored.facts && now.Before(h.stored.factsBeat)) {
		return nil
	}
	err := h.Store.PutFacts(ctx, state.Node, facts)
	switch {
	case errors.Is(err, model.ErrTooLarge):
		// Only other facts or a larger limit help, so the next heartbeats that store facts retry.
		if h.tooLarge != stable {
			h.Log.WarnContext(ctx, "facts not stored", "error", err)
		}
		h.tooLarge = stable
	case err != nil:
		return err
	default:
		h.tooLarge = ""
	}
	h.stored.facts, h.stored.factsBeat = stable, now.Add(factsEvery*next)

	return nil
}

func (h *Heartbeat) every() time.Duration {
	return tasks.Spread(h.Node.config().Heartbeat.Std(), tasks.Jitter)
}

// largeState is the encoded size in bytes above which an unchanged state is stored less often.
const largeState = 64 << 10

// stretch returns the time between heartbeats, longer in proportion to the size of a large stored state. It stays below
// a third of state_ttl, so that the node does not become unreachable.
func (h *Heartbeat) stretch(every time.Duration) time.Duration {
	large := every * time.Duration(len(h.stored.state)) / largeState

	return max(every, min(large, h.Node.config().StateTTL.Std()/3))
}

func (h *Heartbeat) put(ctx context.Context, s model.NodeState) error {
	before := h.Clock.Elapsed()
	if err := h.Store.PutState(ctx, s, h.Node.config().StateTTL.Std()); err != nil {
		return err
	}
	h.sent = sent{at: s.At, before: before, after: h.Clock.Elapsed(), asked: h.sent.asked}

	return nil
}

// Stop stores that the agent was stopped, unless another agent with this id continues.
func (h *Heartbeat) Stop(ctx context.Context) error {
	found, err := h.Store.State(ctx, h.Node.config().Node)
	if err == nil && (h.isDuplicate(found) || !found.Stopped() && h.seenDuplicate(time.Now())) {
		return nil
	}
	s := h.Node.State()
	s.Event = model.NodeStopped

	return h.put(ctx, s)
}

// recall restores data that an earlier agent of this node stored.
func (h *Heartbeat) recall(ctx context.Context) {
	// The state is missing or cannot be read: failures then count from the next run on.
	if before, err := h.Store.State(ctx, h.Node.config().Node); err == nil {
		h.Node.Recall(before.NodeState)
	}
}

// checkDuplicate checks whether another agent stored its state for this node since this agent did.
func (h *Heartbeat) checkDuplicate(ctx context.Context) {
	c := h.Node.config()
	found, err := h.Store.State(ctx, c.Node)
	if err != nil {
		return // missing, or not readable with an older server or older permissions
	}
	h.measure(ctx, found)
	now := time.Now()
	duplicate := ""
	switch {
	case h.isDuplicate(found):
		h.duplicateAt = now
		duplicate = fmt.Sprintf("another agent runs as node %s%s, started %s: give one of them another id (node of agent.yaml, or --node) and restart it", c.Node, on(bounds.TextTo(found.Host, maxHost)), found.Started.Format(time.RFC3339))
	case h.seenDuplicate(now) && !found.Stopped():
		return // its next state may be on its way
	}
	if before := h.Node.setDuplicate(duplicate); duplicate != "" && duplicate != before {
		h.Log.WarnContext(ctx, "duplicate agent", "detail", duplicate)
		h.Duplicate(duplicate)
	}
}

// isDuplicate reports whether a state belongs to another agent that was not stopped.
func (h *Heartbeat) isDuplicate(found model.Node) bool {
	return !found.Started.IsZero() && !found.Stopped() && !h.isSilent(found) && !found.Started.Equal(h.Node.started)
}

// isSilent reports whether a state is older than its silent_after. The server provides its age, because the
// node's clock may be wrong.
func (h *Heartbeat) isSilent(found model.Node) bool {
	after := found.SilentAfter.Std()

	return after > 0 && h.Clock.Until(found.Heard.Add(after), false) <= 0
}

func (h *Heartbeat) seenDuplicate(now time.Time) bool {
	return !h.duplicateAt.IsZero() && now.Sub(h.duplicateAt) <= duplicateGone*h.Node.config().Heartbeat.Std()
}

// maxHost limits a shown host name, in bytes.
const maxHost = 255

// on describes the host of an agent, empty if it is unknown.
func on(host string) string {
	if host == "" {
		return ""
	}

	return " on " + host
}

type sent struct {
	at            time.Time
	before, after time.Duration
	// asked means that measureNow was done for this connection.
	asked bool
}

// measureNow measures the server's time by the state that was just stored, once per connection. Later
// measurements use the state that is read before the next store. A failure is ignored.
func (h *Heartbeat) measureNow(ctx context.Context) {
	if h.sent.asked {
		return
	}
	h.sent.asked = true
	found, err := h.Store.State(ctx, h.Node.config().Node)
	if err == nil && h.measure(ctx, found) {
		// Operators see the offset now, and not at the next heartbeat.
		h.stored.state = ""
		h.Node.Changed.Notify()
	}
}

// measure measures the server's time by the last stored state if found is that state: the server stored it
// between sending and acknowledgement. It reports whether the offset changed.
func (h *Heartbeat) measure(ctx context.Context, found model.Node) bool {
	if found.Heard.IsZero() || !found.Started.Equal(h.Node.started) || !found.At.Equal(h.sent.at) {
		return false
	}
	if !h.Clock.Measured(found.Heard, h.sent.before, h.sent.after) {
		return false
	}
	level, event, offset := slog.LevelInfo, "clock agrees with the NATS server", h.Clock.Offset()
	if offset.Apparent() {
		level, event = slog.LevelWarn, "clock differs from the NATS server"
	}
	h.moves.Log(ctx, h.Log, level, event, "offset", offset.Offset, "within", offset.Within)
	h.ClockMoved()

	return true
}
