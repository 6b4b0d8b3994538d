package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// nodeBox is what the node says of itself, as far as its runs change it.
type nodeBox struct {
	mu        sync.Mutex
	manifests map[string]model.ManifestState
	health    map[string]model.HealthCounts
	message   string
	// twin is that another agent runs as this node, seen at twinAt.
	twin   string
	twinAt time.Time
}

// State gives what the node says of itself.
func (a *Agent) State() model.NodeState {
	c := a.Config()
	a.node.mu.Lock()
	defer a.node.mu.Unlock()

	return bounds.State(model.NodeState{
		Protocol: model.ProtocolNode, Node: c.Node, Version: a.opts.Version, Started: a.started, At: time.Now().UTC(),
		Groups: append([]string{}, c.Groups...), Labels: maps.Clone(c.Labels), Manifests: maps.Clone(a.node.manifests),
		Health: a.node.healthCounts(), Outbox: a.outbox.Len(), Message: cmp.Or(a.node.twin, a.node.message),
	}, a.maxDocument())
}

func (n *nodeBox) healthCounts() model.HealthCounts {
	var out model.HealthCounts
	for _, c := range n.health {
		out.OK += c.OK
		out.Warning += c.Warning
		out.Critical += c.Critical
		out.Unknown += c.Unknown
	}

	return out
}

// setHealth says how the health checks of a manifest stand.
func (a *Agent) setHealth(key string, counts model.HealthCounts) {
	a.node.mu.Lock()
	defer a.node.mu.Unlock()
	if a.node.health[key] != counts {
		a.node.health[key] = counts
		a.said.Notify()
	}
}

// setManifest changes what is said of a manifest; nil removes it.
func (a *Agent) setManifest(key string, change func(*model.ManifestState)) {
	a.node.mu.Lock()
	defer a.node.mu.Unlock()
	if change == nil {
		delete(a.node.manifests, key)
		delete(a.node.health, key)
	} else {
		s := a.node.manifests[key]
		change(&s)
		a.node.manifests[key] = s
	}
	a.said.Notify()
}

func (a *Agent) setMessage(message string) {
	a.node.mu.Lock()
	defer a.node.mu.Unlock()
	if a.node.message != message {
		a.node.message = message
		a.said.Notify()
	}
}

// factsEvery is after how many heartbeats facts are stored again although they
// did not change, because the store may have lost them.
const factsEvery = 10

// told is what the store holds of the node, as far as the agent knows.
type told struct {
	// state and facts are what was stored last; empty says that they must be stored.
	state, facts string
	// waiting says that the state tells of reports that wait: when they are handed
	// over that is not true any more.
	waiting bool
	// told says that this agent stored a state before.
	told bool
	// beat and factsBeat are when they are stored again although they did not change.
	beat, factsBeat time.Time
}

// tell keeps what the store says of the node current: on a change, and as a
// heartbeat with a clock of its own, however often something is said.
func (a *Agent) tell(ctx context.Context) error {
	var t told
	var wait tasks.Backoff
	var retry time.Time
	stuck := false
	for {
		at := t.beat
		if !retry.IsZero() {
			at = retry
		}
		timer := time.NewTimer(time.Until(at))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		case <-a.said:
		case <-a.reached.tell:
			// It may be another store, or one that was wiped.
			t.state, t.facts = "", ""
			wait.Reset()
		}
		timer.Stop()
		if err := a.tellOnce(ctx, &t); err != nil {
			d := min(wait.Next(), a.nextBeat())
			retry = time.Now().Add(d)
			level := slog.LevelDebug
			if !stuck {
				stuck, level = true, slog.LevelWarn
			}
			a.log.Log(ctx, level, "the state of the node cannot be stored, it is tried again", "error", err, "retry", d)
			continue
		}
		stuck = false
		wait.Reset()
		retry = time.Time{}
	}
}

// twinGone is after how many heartbeats without a word of it another agent is
// taken for gone.
const twinGone = 3

// seekTwin looks whether another agent stored its state as that of this node
// since this one did.
func (a *Agent) seekTwin(ctx context.Context) {
	stored, err := a.opts.States.State(ctx, a.opts.Config.Node)
	if err != nil {
		return // it is not there yet, or an older server or older permissions do not give it
	}
	foreign := !stored.Started.IsZero() && !stored.Stopped() && !stored.Started.Equal(a.started)
	now, kept := time.Now(), twinGone*a.Config().Heartbeat.Std()
	a.node.mu.Lock()
	before := a.node.twin
	switch {
	case foreign:
		a.node.twinAt = now
		a.node.twin = fmt.Sprintf("another agent runs as node %s, started %s: give one of them another id", a.opts.Config.Node, stored.Started.Format(time.RFC3339))
	case now.Sub(a.node.twinAt) > kept, stored.Stopped():
		a.node.twin = ""
	}
	twin := a.node.twin
	a.node.mu.Unlock()
	if twin != "" && twin != before {
		a.log.WarnContext(ctx, twin)
		a.reportNode(model.NodeDuplicate, twin)
		a.sync()
	}
}

func (a *Agent) nextBeat() time.Duration {
	return tasks.Spread(a.Config().Heartbeat.Std(), tasks.Jitter)
}

// tellOnce stores state and facts unless they are what was stored last.
func (a *Agent) tellOnce(ctx context.Context, t *told) error {
	now, next := time.Now(), a.nextBeat()
	// A heartbeat that became shorter holds at once.
	t.beat = tasks.Earliest(t.beat, now.Add(next))
	state := a.State()
	words := essence(state)
	drained := t.waiting && state.Outbox == 0
	if words != t.state || drained || !now.Before(t.beat) {
		if t.told {
			a.seekTwin(ctx)
			state = a.State()
			words = essence(state)
		}
		if err := a.opts.States.PutState(ctx, state, a.Config().StateTTL.Std()); err != nil {
			return err
		}
		t.state, t.beat, t.waiting = words, now.Add(next), state.Outbox > 0
		t.told = true
	}
	current, digest := a.facts.stable()
	if digest == "" || (digest == t.facts && now.Before(t.factsBeat)) {
		return nil
	}
	if err := a.opts.States.PutFacts(ctx, a.opts.Config.Node, current); err != nil {
		return err
	}
	t.facts, t.factsBeat = digest, now.Add(factsEvery*next)

	return nil
}

// essence gives a state without what changes all the time and can wait for the
// heartbeat.
func essence(s model.NodeState) string {
	s.At, s.Outbox, s.Manifests = time.Time{}, 0, maps.Clone(s.Manifests)
	for key, m := range s.Manifests {
		m.At = time.Time{}
		s.Manifests[key] = m
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}

	return string(b)
}
