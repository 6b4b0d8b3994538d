package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// The keys of a node in the bucket of nodes.
const (
	stateKey = "state"
	factsKey = "facts"
)

// ErrInvalidState is what a node said of itself and cannot be read.
var ErrInvalidState = errors.New("invalid state")

// NodeRecord is what the bucket of nodes has of one node.
type NodeRecord struct {
	Node string
	// State is what the node said last; empty when Gone.
	State model.NodeState
	// Gone says that its state has expired or was removed, at Updated: the node has
	// gone silent. That is known for as long as the bucket keeps such marks.
	Gone     bool
	Updated  time.Time
	Revision uint64
}

// PutState stores what a node says of itself. The server forgets it after ttl,
// whole seconds, at least one, and leaves a mark; zero keeps it for ever.
func (s *Store) PutState(ctx context.Context, node string, state model.NodeState, ttl time.Duration) error {
	return s.putNode(ctx, node, stateKey, state, ttl)
}

// PutFacts stores the facts of a node; ttl is that of PutState. The error wraps
// ErrTooLarge where the server does not take so much.
func (s *Store) PutFacts(ctx context.Context, node string, facts model.Facts, ttl time.Duration) error {
	return s.putNode(ctx, node, factsKey, facts, ttl)
}

func (s *Store) putNode(ctx context.Context, node, key string, doc any, ttl time.Duration) error {
	if err := CheckNode(node, nil); err != nil {
		return err
	}
	data, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("%s of node %s: %w", key, node, err)
	}
	if err := s.checkSize(key+" of node "+node, data); err != nil {
		return err
	}
	var opts []jetstream.PublishOpt
	if ttl > 0 {
		opts = append(opts, jetstream.WithMsgTTL(wholeSeconds(ttl)))
	}
	if _, err := s.js.Publish(ctx, kvSubject(s.names.Nodes(), node+"."+key), data, opts...); err != nil {
		return fmt.Errorf("put %s of node %s: %w", key, node, err)
	}

	return nil
}

// wholeSeconds rounds up, because the server refuses anything else.
func wholeSeconds(d time.Duration) time.Duration {
	return max(time.Second, (d + time.Second - 1).Truncate(time.Second))
}

// Facts reads the facts of a node; the error wraps ErrNotFound.
func (s *Store) Facts(ctx context.Context, node string) (model.Facts, error) {
	if err := CheckNode(node, nil); err != nil {
		return nil, err
	}
	data, err := s.KVGet(ctx, s.names.Nodes(), node+"."+factsKey)
	if err != nil {
		return nil, fmt.Errorf("facts of node %s: %w", node, err)
	}
	var facts model.Facts
	if err := json.Unmarshal(data, &facts); err != nil {
		return nil, fmt.Errorf("facts of node %s: %w", node, err)
	}

	return facts, nil
}

// Nodes gives what the bucket has of every node, also of those that went silent,
// in no order. A state that cannot be read is an error that wraps ErrInvalidState and
// names the node, and the others are given all the same.
func (s *Store) Nodes(ctx context.Context) ([]NodeRecord, error) {
	var all []NodeRecord
	var failed []error
	for r, err := range s.nodes(ctx, false) {
		if err != nil {
			failed = append(failed, err)
			continue
		}
		all = append(all, r)
	}

	return all, errors.Join(failed...)
}

// FollowNodes gives what every node says from now on, beginning with what it
// said last, until the context ends; errors are those of Nodes, and the last
// one ends it.
func (s *Store) FollowNodes(ctx context.Context) iter.Seq2[NodeRecord, error] {
	return s.nodes(ctx, true)
}

func (s *Store) nodes(ctx context.Context, follow bool) iter.Seq2[NodeRecord, error] {
	bucket := s.names.Nodes()
	cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{kvSubject(bucket, "*."+stateKey)}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy}

	return func(yield func(NodeRecord, error) bool) {
		for m, err := range s.scan(ctx, kvStream(bucket), cfg, follow) {
			var r NodeRecord
			if err == nil {
				r, err = nodeRecord(strings.TrimPrefix(m.subject, kvSubject(bucket, "")), m)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// nodeRecord decodes a state. A node may only say things of itself.
func nodeRecord(key string, m message) (NodeRecord, error) {
	node := strings.TrimSuffix(key, "."+stateKey)
	r := NodeRecord{Node: node, Gone: m.deleted(), Updated: m.time, Revision: m.sequence}
	if r.Gone {
		return r, nil
	}
	if err := json.Unmarshal(m.data, &r.State); err != nil {
		return r, fmt.Errorf("%w of node %s: %w", ErrInvalidState, node, err)
	}
	if r.State.Node != node {
		return r, fmt.Errorf("%w of node %s: it says to be of %q", ErrInvalidState, node, r.State.Node)
	}

	return r, nil
}
