package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// Bucket is the bucket of nodes.
type Bucket struct{ store *kvstore.Store }

// New makes it of a store.
func New(s *kvstore.Store) Bucket { return Bucket{s} }

// silentKept is how long at least a node that went silent is still known.
const silentKept = 7 * 24 * time.Hour

// ErrInvalidState is what a node said of itself and cannot be read.
var ErrInvalidState = errors.New("invalid state")

// PutState stores what state.Node says of itself, and that it counts as silent when
// it says nothing more for ttl. The server forgets it after 7 days, or after ttl
// where that is longer. With a ttl of zero the node never counts as silent, and
// the state is kept for ever.
func (s Bucket) PutState(ctx context.Context, state model.NodeState, ttl time.Duration) error {
	state.SilentAfter = model.Duration(ttl)
	if ttl > 0 {
		ttl = max(silentKept, ttl)
	}

	return s.putNode(ctx, state.Node, kvstore.StateKey, state, ttl)
}

// State gives what the bucket has of a node; the error wraps model.ErrNotFound when
// it has nothing, and ErrInvalidState.
func (s Bucket) State(ctx context.Context, node string) (model.Node, error) {
	if err := model.CheckNode(node, nil); err != nil {
		return model.Node{}, err
	}
	bucket := s.store.Names().Nodes()
	m, err := s.store.Last(ctx, kvstore.KVStream(bucket), kvstore.KVSubject(bucket, node+"."+kvstore.StateKey))
	if err == nil && m.Deleted() {
		err = model.ErrNotFound
	}
	if err != nil {
		return model.Node{}, fmt.Errorf("state of node %s: %w", node, err)
	}

	return readNode(node+"."+kvstore.StateKey, m, time.Now())
}

// PutFacts stores the facts of a node, for ever. The error wraps model.ErrTooLarge
// where the server does not take so much.
func (s Bucket) PutFacts(ctx context.Context, node string, facts model.Facts) error {
	return s.putNode(ctx, node, kvstore.FactsKey, facts, 0)
}

func (s Bucket) putNode(ctx context.Context, node, key string, doc any, ttl time.Duration) error {
	if err := model.CheckNode(node, nil); err != nil {
		return err
	}
	data, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("%s of node %s: %w", key, node, err)
	}
	if err := s.store.Away(); err != nil {
		return fmt.Errorf("put %s of node %s: %w", key, node, err)
	}
	if err := s.store.CheckSize(key+" of node "+node, data); err != nil {
		return err
	}
	var opts []jetstream.PublishOpt
	if ttl > 0 {
		opts = append(opts, jetstream.WithMsgTTL(kvstore.WholeSeconds(ttl)))
	}
	subject := kvstore.KVSubject(s.store.Names().Nodes(), node+"."+key)
	ctx, done := s.store.Permitted(ctx, kvstore.To(subject))
	_, err = s.store.JetStream().Publish(ctx, subject, data, opts...)
	if err = done(err); err != nil {
		return fmt.Errorf("put %s of node %s: %w", key, node, err)
	}

	return nil
}

// Nodes gives what the bucket has of every node, also of those that went silent,
// by name. A state that cannot be read is an error that wraps ErrInvalidState and
// names the node, and the others are given all the same.
func (s Bucket) Nodes(ctx context.Context) ([]model.Node, error) {
	bucket := s.store.Names().Nodes()
	cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{kvstore.KVSubject(bucket, "*."+kvstore.StateKey)}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy}
	var all []model.Node
	var failed []error
	for m, err := range s.store.Scan(ctx, kvstore.KVStream(bucket), cfg, false) {
		if err == nil && m.Deleted() {
			continue
		}
		var r model.Node
		if err == nil {
			r, err = readNode(strings.TrimPrefix(m.Subject, kvstore.KVSubject(bucket, "")), m, time.Now())
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
func readNode(key string, m kvstore.Message, now time.Time) (model.Node, error) {
	node := strings.TrimSuffix(key, "."+kvstore.StateKey)
	r := model.Node{Heard: m.Time}
	if err := json.Unmarshal(m.Data, &r.NodeState); err != nil {
		return r, fmt.Errorf("%w of node %s: %w", ErrInvalidState, node, err)
	}
	if r.Node != node {
		return r, fmt.Errorf("%w of node %s: it says to be of %q", ErrInvalidState, node, r.Node)
	}
	silentAfter := r.SilentAfter.Std()
	r.Silent = silentAfter > 0 && m.Time.Add(silentAfter).Before(now)

	return r, nil
}
