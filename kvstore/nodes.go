package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// minStateTTL is the minimum time for which the server stores the state of an unreachable node.
const minStateTTL = 7 * 24 * time.Hour

// statePage is the number of states in one read. A read also ends after a number of bytes. Large pages
// are faster, because the server counts the remaining messages for each page.
const statePage = 2000

// ErrInvalidState reports a state that is unreadable or names another node.
var ErrInvalidState = errors.New("invalid state")

// ErrInvalidFacts reports unreadable facts.
var ErrInvalidFacts = errors.New("invalid facts")

// Nodes accesses the bucket of states, facts and inventories of nodes.
type Nodes struct{ store *Store }

// NewNodes returns the nodes of the fleet of s.
func NewNodes(s *Store) Nodes { return Nodes{s} }

// PutState stores the state of state.Node. The node counts as unreachable if it stores no other state
// within ttl. The server stores the state for 7 days, or for a longer ttl. With a ttl of zero, the
// node is never unreachable and the state does not expire.
func (b Nodes) PutState(ctx context.Context, state model.NodeState, ttl time.Duration) error {
	state.SilentAfter = model.Duration(ttl)
	var opts []jetstream.PublishOpt
	if ttl > 0 {
		opts = append(opts, jetstream.WithMsgTTL(stateTTL(ttl)))
	}

	return b.put(ctx, "state", state.Node, Names.NodeState, state, opts...)
}

// stateTTL returns how long the server stores a state with a ttl.
func stateTTL(ttl time.Duration) time.Duration { return WholeSeconds(max(minStateTTL, ttl)) }

// MaxMessage returns the maximum size in bytes of a state or of facts, or the default while it is
// unknown.
func (b Nodes) MaxMessage() int64 {
	return b.store.Sizes().Max(b.stream(), DefaultStateMax)
}

// stream returns the stream behind the bucket.
func (b Nodes) stream() string { return KVStream(b.store.Names().Nodes()) }

// PutFacts stores the facts of a node, without an expiry. The error wraps model.ErrTooLarge if the
// bucket or the server rejects the size.
func (b Nodes) PutFacts(ctx context.Context, node string, facts model.Facts) error {
	return b.put(ctx, "facts", node, Names.NodeFacts, facts)
}

func (b Nodes) put(ctx context.Context, what, node string, subject func(Names, string) string, doc any, opts ...jetstream.PublishOpt) error {
	if err := model.CheckNode(node, nil); err != nil {
		return err
	}
	data, err := json.Marshal(doc)
	if err == nil {
		err = b.store.Ready(ctx)
	}
	if err == nil {
		err = b.checkSize(what, data)
	}
	if err == nil {
		_, err = b.store.Publish(ctx, NewMsg(subject(b.store.Names(), node), data), opts...)
	}
	if err != nil {
		return fmt.Errorf("put %s of node %s: %w", what, node, err)
	}

	return nil
}

// checkSize returns an error if a document exceeds the limit of the bucket. The error wraps
// model.ErrTooLarge and names the remedy.
func (b Nodes) checkSize(what string, data []byte) error {
	if err := b.store.Sizes().Check(b.stream(), what, data); err != nil {
		return fmt.Errorf("%w: have fewer %s, or an operator raises the bound with `%s --state-max SIZE`", err, what, b.store.Names().Init())
	}

	return nil
}

// State returns the node that a state describes. The error wraps model.ErrNotFound or ErrInvalidState.
func (b Nodes) State(ctx context.Context, node string) (model.Node, error) {
	if err := model.CheckNode(node, nil); err != nil {
		return model.Node{}, err
	}
	n := b.store.Names()
	m, err := b.store.Value(ctx, b.stream(), n.NodeState(node))
	if err != nil {
		return model.Node{}, fmt.Errorf("state of node %s: %w", node, err)
	}

	return decodeState(node, m, time.Now())
}

// FactsDocument returns the facts of a node as a document. The error wraps model.ErrNotFound or
// ErrInvalidFacts.
func (b Nodes) FactsDocument(ctx context.Context, node string) (json.RawMessage, error) {
	if err := model.CheckNode(node, nil); err != nil {
		return nil, err
	}
	m, err := b.store.Value(ctx, b.stream(), b.store.Names().NodeFacts(node))
	invalid := errors.Is(err, ErrUnreadable) || errors.Is(err, ErrServerHeaders)
	if err == nil {
		var facts model.Facts
		err = json.Unmarshal(m.Data, &facts)
		invalid = err != nil
	}
	if invalid {
		err = fmt.Errorf("%w: %w", ErrInvalidFacts, err)
	}
	if err != nil {
		return nil, fmt.Errorf("facts of node %s: %w", node, err)
	}

	return m.Data, nil
}

// stateNode returns the node of a subject.
func stateNode(n Names, subject string) string {
	node, _, _ := strings.Cut(strings.TrimPrefix(subject, KVSubject(n.Nodes(), "")), ".")

	return node
}

// decodeState decodes the state of a node at a time. If it returns an error, the node is Unreadable. A state that
// names another node is an error.
func decodeState(node string, m Message, now time.Time) (model.Node, error) {
	var r model.Node
	err := decodeStateInto(&r, node, &m, now)

	return r, err
}

// decodeStateInto decodes into r, which must be zero.
func decodeStateInto(r *model.Node, node string, m *Message, now time.Time) error {
	r.Heard = m.Time
	err := m.Refusal()
	if err == nil {
		var state *model.NodeState
		if state, err = model.DecodeJSON[model.NodeState](m.Data); err == nil {
			r.NodeState = *state
		}
	}
	if err == nil && r.Node != node {
		err = fmt.Errorf("it names node %.80q", r.Node)
	}
	if err != nil {
		*r = model.Node{Heard: m.Time, Unreadable: model.Line(err.Error(), maxUnreadableReason), NodeState: model.NodeState{Node: node}}
		// Without groups, the node could not be excluded from any group.
		var known struct{ Groups []string }
		_ = json.Unmarshal(m.Data, &known)
		r.Groups = known.Groups
		return fmt.Errorf("%w of node %s: %s", ErrInvalidState, node, r.Unreadable)
	}
	r.Silent = r.IsSilent(now)

	return nil
}

// Name returns a name of the bucket for messages.
func (b Nodes) Name() string { return "bucket " + b.store.Names().Nodes() }

// Age returns the creation time of the bucket and its last revision. A new bucket counts from 1. The error wraps
// model.ErrNotFound if there is no bucket.
func (b Nodes) Age(ctx context.Context) (created time.Time, last uint64, err error) {
	bucket := b.store.Names().Nodes()

	return b.store.StreamAge(ctx, KVStream(bucket), KVSubject(bucket, ">"))
}

// StoredAt returns the time at which a revision was stored. The error wraps model.ErrNotFound if it is not there.
func (b Nodes) StoredAt(ctx context.Context, revision uint64) (time.Time, error) {
	bucket := b.store.Names().Nodes()

	return b.store.StoredAt(ctx, KVStream(bucket), KVSubject(bucket, ">"), revision)
}
