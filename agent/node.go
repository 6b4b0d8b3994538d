package agent

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
)

// nodeBox is what the node says of itself, as far as its runs change it.
type nodeBox struct {
	mu        sync.Mutex
	manifests map[string]model.ManifestState
	message   string
}

// State gives what the node says of itself.
func (a *Agent) State() model.NodeState {
	c := a.Config()
	a.node.mu.Lock()
	defer a.node.mu.Unlock()

	return model.NodeState{
		Protocol: model.ProtocolNode, Node: c.Node, Version: a.opts.Version, Started: a.started, At: time.Now().UTC(),
		Groups: append([]string{}, c.Groups...), Labels: maps.Clone(c.Labels), Manifests: maps.Clone(a.node.manifests),
		Outbox: a.outbox.Len(), Message: a.node.message,
	}
}

// setManifest changes what is said of a manifest; nil removes it.
func (a *Agent) setManifest(key string, change func(*model.ManifestState)) {
	a.node.mu.Lock()
	defer a.node.mu.Unlock()
	if change == nil {
		delete(a.node.manifests, key)
	} else {
		s := a.node.manifests[key]
		change(&s)
		a.node.manifests[key] = s
	}
	a.said.signal()
}

func (a *Agent) setMessage(message string) {
	a.node.mu.Lock()
	defer a.node.mu.Unlock()
	if a.node.message != message {
		a.node.message = message
		a.said.signal()
	}
}

// tell keeps what the store says of the node current: on a change, and as a
// heartbeat.
func (a *Agent) tell(ctx context.Context) error {
	var said, facts string
	var wait backoff
	next := time.Duration(0)
	for {
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
			said = ""
		case <-a.said:
			timer.Stop()
		}
		if err := a.tellOnce(ctx, &said, &facts); err != nil {
			next = min(wait.next(), spread(a.Config().Heartbeat.Std(), jitter))
			a.log.DebugContext(ctx, "the state of the node cannot be stored", "error", err, "retry", next)
			continue
		}
		wait.reset()
		next = spread(a.Config().Heartbeat.Std(), jitter)
	}
}

// tellOnce stores state and facts unless they are what was stored last.
func (a *Agent) tellOnce(ctx context.Context, said, facts *string) error {
	state := a.State()
	words := essence(state)
	if words != *said {
		if err := a.opts.States.PutState(ctx, state, a.Config().StateTTL.Std()); err != nil {
			return err
		}
		*said = words
	}
	current, digest := a.facts.stable()
	if digest == *facts {
		return nil
	}
	if err := a.opts.States.PutFacts(ctx, current); err != nil {
		return err
	}
	*facts = digest

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
