package watch

import (
	"context"
	"fmt"
	"sync"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// Node follows what is assigned to a node, also when its groups change, and reads
// the values of its keys. Make it with NewNode.
type Node struct {
	store *kvstore.Store

	mu      sync.Mutex
	options Options
	watch   *Watch
	stop    context.CancelFunc
}

// NewNode returns the watch of a node; it asks the server nothing yet.
func NewNode(s *kvstore.Store, o Options) *Node {
	return &Node{store: s, options: o.withDefaults()}
}

// Run keeps the entries current until the context ends, with other groups after
// SetGroups. last is what an earlier process knew; it counts at the first call.
// wake is called as by Watch.Run. An error is not the end: Run may be called again.
func (n *Node) Run(ctx context.Context, last model.Memory, wake func(keys []string)) error {
	for ctx.Err() == nil {
		watching, stop := context.WithCancel(ctx)
		watch, err := n.begin(last, stop)
		if err == nil {
			err = watch.Run(watching, wake)
		}
		regrouped := watching.Err() != nil
		stop()
		if err != nil || !regrouped {
			return err
		}
	}

	return nil
}

// begin makes the watch of the current groups; stop ends it when they change.
func (n *Node) begin(last model.Memory, stop context.CancelFunc) (*Watch, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.options
	if o.Last = last; n.watch != nil {
		o.Last = n.watch.Memory()
	}
	watch, err := New(n.store, o)
	if err != nil {
		return nil, err
	}
	n.watch, n.stop = watch, stop

	return watch, nil
}

// Entries returns the keys and revisions that are assigned, as Watch.Entries does;
// nothing before Run.
func (n *Node) Entries() (map[string]model.Entry, model.Sync) {
	n.mu.Lock()
	watch := n.watch
	n.mu.Unlock()
	if watch == nil {
		return nil, model.Sync{}
	}

	return watch.Entries()
}

// Read reads a key at a revision or a later one; a replica that lags is asked
// again for a while. The error wraps model.ErrNotFound when the bucket does not
// hold the key.
func (n *Node) Read(ctx context.Context, key string, revision uint64) (model.Entry, error) {
	bucket := n.store.Names().Manifests()
	wait := lagPause
	for try := 1; ; try++ {
		m, err := n.store.Last(ctx, kvstore.KVStream(bucket), kvstore.KVSubject(bucket, key))
		switch {
		case err != nil:
			return model.Entry{}, err
		case m.Deleted():
			return model.Entry{}, fmt.Errorf("%w: %s was deleted", model.ErrNotFound, key)
		case m.Sequence >= revision || try == lagTries:
			return kvstore.NewEntry(key, m), nil
		}
		if err := kvstore.Pause(ctx, wait); err != nil {
			return model.Entry{}, err
		}
		wait *= 2
	}
}

// SetGroups replaces the groups of the node; Sync is not complete before their
// keys were read.
func (n *Node) SetGroups(groups []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.options.Groups = groups
	if n.stop != nil {
		n.stop()
	}
}
