package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// silentKept is how long at least a node that went silent is still known.
const silentKept = 7 * 24 * time.Hour

// ErrInvalidState is what a node said of itself and cannot be read.
var ErrInvalidState = errors.New("invalid state")

// PutState stores what state.Node says of itself, and that it counts as silent when
// it says nothing more for ttl. The server forgets it after 7 days, or after ttl
// where that is longer. With a ttl of zero the node never counts as silent, and
// the state is kept for ever.
func (s *Store) PutState(ctx context.Context, state model.NodeState, ttl time.Duration) error {
	state.SilentAfter = model.Duration(ttl)
	if ttl > 0 {
		ttl = max(silentKept, ttl)
	}

	return s.putNode(ctx, state.Node, stateKey, state, ttl)
}

// State gives what the bucket has of a node; the error wraps model.ErrNotFound when
// it has nothing, and ErrInvalidState.
func (s *Store) State(ctx context.Context, node string) (model.Node, error) {
	if err := model.CheckNode(node, nil); err != nil {
		return model.Node{}, err
	}
	bucket := s.names.Nodes()
	m, err := s.last(ctx, kvStream(bucket), kvSubject(bucket, node+"."+stateKey))
	if err == nil && m.deleted() {
		err = model.ErrNotFound
	}
	if err != nil {
		return model.Node{}, fmt.Errorf("state of node %s: %w", node, err)
	}

	return readNode(node+"."+stateKey, m, time.Now())
}

// PutFacts stores the facts of a node, for ever. The error wraps model.ErrTooLarge
// where the server does not take so much.
func (s *Store) PutFacts(ctx context.Context, node string, facts model.Facts) error {
	return s.putNode(ctx, node, factsKey, facts, 0)
}

func (s *Store) putNode(ctx context.Context, node, key string, doc any, ttl time.Duration) error {
	if err := model.CheckNode(node, nil); err != nil {
		return err
	}
	data, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("%s of node %s: %w", key, node, err)
	}
	if err := s.away(); err != nil {
		return fmt.Errorf("put %s of node %s: %w", key, node, err)
	}
	if err := s.checkSize(key+" of node "+node, data); err != nil {
		return err
	}
	var opts []jetstream.PublishOpt
	if ttl > 0 {
		opts = append(opts, jetstream.WithMsgTTL(wholeSeconds(ttl)))
	}
	subject := kvSubject(s.names.Nodes(), node+"."+key)
	ctx, done := s.permitted(ctx, to(subject))
	_, err = s.js.Publish(ctx, subject, data, opts...)
	if err = done(err); err != nil {
		return fmt.Errorf("put %s of node %s: %w", key, node, err)
	}

	return nil
}

// wholeSeconds rounds up, because the server refuses anything else.
func wholeSeconds(d time.Duration) time.Duration {
	return max(time.Second, (d + time.Second - 1).Truncate(time.Second))
}

// Nodes gives what the bucket has of every node, also of those that went silent,
// by name. A state that cannot be read is an error that wraps ErrInvalidState and
// names the node, and the others are given all the same.
func (s *Store) Nodes(ctx context.Context) ([]model.Node, error) {
	bucket := s.names.Nodes()
	cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{kvSubject(bucket, "*."+stateKey)}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy}
	var all []model.Node
	var failed []error
	for m, err := range s.scan(ctx, kvStream(bucket), cfg, false) {
		if err == nil && m.deleted() {
			continue
		}
		var r model.Node
		if err == nil {
			r, err = readNode(strings.TrimPrefix(m.subject, kvSubject(bucket, "")), m, time.Now())
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		all = append(all, r)
	}

	slices.SortFunc(all, func(a, b model.Node) int { return strings.Compare(a.Node, b.Node) })

	return all, errors.Join(failed...)
}

// readNode decodes a state as it is to be read at a time. A node may only say
// things of itself.
func readNode(key string, m message, now time.Time) (model.Node, error) {
	node := strings.TrimSuffix(key, "."+stateKey)
	r := model.Node{Heard: m.time}
	if err := json.Unmarshal(m.data, &r.NodeState); err != nil {
		return r, fmt.Errorf("%w of node %s: %w", ErrInvalidState, node, err)
	}
	if r.Node != node {
		return r, fmt.Errorf("%w of node %s: it says to be of %q", ErrInvalidState, node, r.Node)
	}
	silentAfter := r.SilentAfter.Std()
	r.Silent = silentAfter > 0 && m.time.Add(silentAfter).Before(now)

	return r, nil
}
