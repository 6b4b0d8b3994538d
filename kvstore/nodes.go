package kvstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// minStateTTL is how long the server stores the state of an unreachable node at least.
const minStateTTL = 7 * 24 * time.Hour

// statePage is the number of states in one read. A read also ends after a number of bytes. Large pages
// are faster, because the server counts the remaining messages for each page.
const statePage = 2000

// ErrInvalidState reports a state that is unreadable or names another node.
var ErrInvalidState = errors.New("invalid state")

// ErrInvalidFacts reports unreadable facts.
var ErrInvalidFacts = errors.New("invalid facts")

// Nodes accesses the bucket of states, facts and inventories of nodes.
type Nodes struct{ series }

// NewNodes returns the nodes of the fleet of s.
func NewNodes(s *Store) Nodes { return Nodes{newSeries(s, s.Names.Nodes)} }

// PutState stores the state of state.Node. The node counts as unreachable if it stores no other state
// within ttl. The server stores the state for 7 days, or for a longer ttl. With a ttl of zero, the
// node is never unreachable and the state does not expire.
func (b Nodes) PutState(ctx context.Context, state model.NodeState, ttl time.Duration) error {
	state.SilentAfter = model.Duration(ttl)
	var opts []jetstream.PublishOpt
	if ttl > 0 {
		opts = append(opts, jetstream.WithMsgTTL(stateTTL(ttl)))
	}

	return b.put(ctx, "state", state.Node, Names.NodeState, func() ([]byte, error) { return json.Marshal(state) }, opts...)
}

func stateTTL(ttl time.Duration) time.Duration { return WholeSeconds(max(minStateTTL, ttl)) }

// MaxMessage returns the maximum size in bytes of a state or of facts, or the default while it is
// unknown.
func (b Nodes) MaxMessage() int64 {
	return b.store.Sizes.Max(b.stream, DefaultStateMax)
}

// PutFacts stores the facts of a node, without an expiry. The error wraps model.ErrTooLarge if the
// bucket or the server rejects the size.
func (b Nodes) PutFacts(ctx context.Context, node string, facts model.Facts) error {
	return b.put(ctx, "facts", node, Names.NodeFacts, func() ([]byte, error) { return json.Marshal(facts) })
}

func (b Nodes) put(ctx context.Context, what, node string, subject func(Names, string) string, encode func() ([]byte, error), opts ...jetstream.PublishOpt) error {
	if err := model.CheckNode(node, nil); err != nil {
		return err
	}
	data, err := encode()
	if err == nil {
		err = b.store.Ready(ctx)
	}
	if err == nil {
		if err = b.store.Sizes.Check(b.stream, what, data); err != nil {
			err = fmt.Errorf("%w: reduce the %s, or an operator raises the bound with `%s --state-max SIZE`", err, what, b.store.Names.Run("fleet init"))
		}
	}
	if err == nil {
		_, err = b.store.Publish(ctx, NewMsg(subject(b.store.Names, node), data), opts...)
	}
	if err != nil {
		return fmt.Errorf("put %s of node %s: %w", what, node, err)
	}

	return nil
}

// State returns the node that a state describes. The error wraps model.ErrNotFound or ErrInvalidState.
func (b Nodes) State(ctx context.Context, node string) (model.Node, error) {
	if err := model.CheckNode(node, nil); err != nil {
		return model.Node{}, err
	}
	n := b.store.Names
	m, err := b.store.Value(ctx, b.stream, n.NodeState(node))
	if err != nil {
		return model.Node{}, fmt.Errorf("state of node %s: %w", node, err)
	}

	var out model.Node
	err = decodeState(&out, node, &m, time.Now())

	return out, err
}

// FactsDocument returns the facts of a node as a document. The error wraps model.ErrNotFound or
// ErrInvalidFacts.
func (b Nodes) FactsDocument(ctx context.Context, node string) (json.RawMessage, error) {
	if err := model.CheckNode(node, nil); err != nil {
		return nil, err
	}
	m, err := b.store.Value(ctx, b.stream, b.store.Names.NodeFacts(node))
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

func stateNode(n Names, subject string) string {
	node, _, _ := strings.Cut(strings.TrimPrefix(subject, KVSubject(n.Nodes, "")), ".")

	return node
}

// decodeState decodes the state of a node at a time into r, which must be zero. If it returns an error, the node is
// Unreadable. A state that names another node is an error.
func decodeState(r *model.Node, node string, m *Message, now time.Time) error {
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

// Nodes returns every node sorted by name, including unreachable ones. A node with an unreadable state is Unreadable.
func (b Nodes) Nodes(ctx context.Context) ([]model.Node, error) {
	newest, err := b.newest(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]model.Node, 0, len(newest))
	for _, s := range newest {
		if s.Node.Node != "" {
			all = append(all, s.Node)
		}
	}
	slices.SortFunc(all, func(a, b model.Node) int { return strings.Compare(a.Node, b.Node) })

	return all, nil
}

// storedNode is a decoded state. A deleted state has no node name.
type storedNode struct {
	model.Node
	subject  string
	sequence uint64
}

// newest returns the newest state of each node by subject. It uses direct gets, because a consumer
// misses states that are replaced during the scan. Direct gets miss states that a replica lacks, and
// states with unreadable headers. For administrators, newest adds these from the leader's list of
// subjects. Operators may not list the stream.
func (b Nodes) newest(ctx context.Context) (map[string]*storedNode, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var listed Listing
	var unlisted error
	var listing sync.WaitGroup
	if err := b.store.Bind(ctx, b.stream); err != nil {
		return nil, err
	}
	isOwn := b.store.API.InUse().IsOwn()
	if isOwn {
		listing.Go(func() { listed, unlisted = b.store.Subjects(ctx, b.stream, b.store.Names.NodeState("*")) })
	}
	out, err := b.scan(ctx)
	if err != nil {
		cancel()
	}
	listing.Wait()
	if err = cmp.Or(err, unlisted); err != nil || !isOwn {
		return out, err
	}

	return out, b.complete(ctx, out, listed.Subjects)
}

func (b Nodes) complete(ctx context.Context, out map[string]*storedNode, listed map[string]bool) error {
	for subject := range listed {
		if _, known := out[subject]; known {
			continue
		}
		m, found, err := b.store.Find(ctx, b.stream, subject)
		if err != nil {
			return err
		}
		if found {
			out[subject] = &storedNode{}
			out[subject].decode(b.store.Names, m)
		}
	}

	return nil
}

const decodeChunk = 64

// scan reads the states. Goroutines decode them during the next read.
func (b Nodes) scan(ctx context.Context) (map[string]*storedNode, error) {
	read, out := make(chan []Message, 2*statePage/decodeChunk), map[string]*storedNode{}
	var mu sync.Mutex
	var decoding sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		decoding.Go(func() {
			for messages := range read {
				part := make([]storedNode, len(messages))
				for i, m := range messages {
					part[i].decode(b.store.Names, m)
				}
				mu.Lock()
				for i := range part {
					// A state that was replaced during the scan may appear twice.
					s := &part[i]
					if known, is := out[s.subject]; !is || known.sequence < s.sequence {
						out[s.subject] = s
					}
				}
				mu.Unlock()
			}
		})
	}
	var err error
	for page, failed := range scanPages(ctx, b.store, Query{Stream: b.stream, Subject: b.store.Names.NodeState("*")}, statePage) {
		err = failed
		for messages := range slices.Chunk(page.Messages, decodeChunk) {
			read <- messages
		}
	}
	close(read)
	decoding.Wait()

	return out, err
}

func (s *storedNode) decode(n Names, m Message) {
	s.subject, s.sequence = m.Subject, m.Sequence
	if !m.Deleted() || m.Forged {
		_ = decodeState(&s.Node, stateNode(n, m.Subject), &m, time.Now())
	}
}

// Watch yields the stored states in any order, and then each state that is stored or removed until ctx
// ends. An unreadable state yields an Unreadable node. Watch does not yield expiries and may miss a
// change in an outage, so a long-running caller also calls Nodes from time to time. An error is the
// last item.
func (b Nodes) Watch(ctx context.Context) iter.Seq2[model.NodeChange, error] {
	return func(yield func(model.NodeChange, error) bool) {
		names := b.store.Names
		cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{names.NodeState("*")}}
		for m, err := range scanStream(ctx, b.store, b.stream, cfg, true) {
			if err != nil {
				yield(model.NodeChange{}, err)
				return
			}
			node := stateNode(names, m.Subject)
			c := model.NodeChange{Gone: m.Deleted() && !m.Forged}
			if c.Gone {
				c.Node.Node = node
			} else {
				_ = decodeState(&c.Node, node, &m, time.Now()) // on error the node is Unreadable
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// Stored yields the nodes with a stored state, in any order. It may miss a state with unreadable
// headers, or one that a replica lacks. An error is the last item.
func (b Nodes) Stored(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		names := b.store.Names
		for m, err := range scanDirect(ctx, b.store, b.stream, names.NodeState("*"), statePage) {
			if err != nil {
				yield("", err)
				return
			}
			if (!m.Deleted() || m.Forged) && !yield(stateNode(names, m.Subject), nil) {
				return
			}
		}
	}
}

// Remove removes the state, facts and inventory of a node. It stores removal markers for as long as
// the server would have stored the state. If a marker expired earlier, a killed server could restore
// the removed document. The markers of a state without an expiry stay forever.
func (b Nodes) Remove(ctx context.Context, node string) error {
	opts, err := b.marked(ctx, node)
	if err != nil {
		return err
	}
	n := b.store.Names
	for _, subject := range []string{n.NodeState(node), n.NodeFacts(node), n.NodeInventory(node)} {
		if _, err := b.store.Publish(ctx, NewDeletion(subject), opts...); err != nil {
			return fmt.Errorf("remove node %s: %w", node, err)
		}
	}

	return nil
}

func (b Nodes) marked(ctx context.Context, node string) ([]jetstream.PublishOpt, error) {
	state, err := b.State(ctx, node)
	switch {
	case errors.Is(err, model.ErrNotFound), errors.Is(err, ErrInvalidState), errors.Is(err, ErrUnreadable), errors.Is(err, ErrServerHeaders):
		// A missing or invalid state has no TTL.
	case err != nil:
		return nil, fmt.Errorf("remove node %s: %w", node, err)
	case state.SilentAfter == 0:
		return nil, nil
	}

	return []jetstream.PublishOpt{jetstream.WithMsgTTL(stateTTL(state.SilentAfter.Std()))}, nil
}
