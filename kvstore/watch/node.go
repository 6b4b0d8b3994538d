package watch

import (
	"context"
	"sync"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// MemoryKeeper keeps a Memory over a restart.
type Keeper interface {
	// Recall gives what was kept last, and the zero Memory where there is nothing.
	Recall() (Memory, error)
	// Remember keeps a Memory in place of the one before.
	Remember(ctx context.Context, m Memory) error
}

// NodeWatch follows what is assigned to a node, over restarts and changes of its
// groups: what it saw last is kept, so that a bucket which was made anew while
// the node was down is told from one whose manifests were removed. Make it with
// NewNodeWatch.
type Node struct {
	store   *kvstore.Store
	keeper  Keeper
	mu      sync.Mutex
	options Options
	watch   *Watch
	stop    context.CancelFunc
}

// NewNodeWatch makes the watch of a node; it asks the server nothing yet.
// Options.Last is the keeper's.
func NewNode(s *kvstore.Store, o Options, keeper Keeper) *Node {
	return &Node{store: s, options: o.withDefaults(), keeper: keeper}
}

// Run keeps the entries current until the context ends, with other groups after
// a Regroup. wake is told as by Watch.Run. An error is not the end: Run may be
// called again.
func (n *Node) Run(ctx context.Context, wake func(keys []string)) error {
	log := n.options.Log
	last, err := n.keeper.Recall()
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		watching, stop := context.WithCancel(ctx)
		watch, err := n.begin(last, stop)
		if err != nil {
			stop()
			return err
		}
		err = watch.Run(watching, func(keys []string) {
			if err := n.keeper.Remember(ctx, watch.Memory()); err != nil {
				log.ErrorContext(ctx, "remembering what is assigned", "error", err)
			}
			wake(keys)
		})
		regrouped := watching.Err() != nil
		stop()
		if err != nil || !regrouped {
			return err
		}
		last = watch.Memory()
	}

	return nil
}

// begin makes the watch of the groups of now; stop ends it when they change.
func (n *Node) begin(last Memory, stop context.CancelFunc) (*Watch, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.options
	o.Last = last
	watch, err := New(n.store, o)
	n.watch, n.stop = watch, stop

	return watch, err
}

// Entries gives what is assigned, as Watch.Entries does; nothing before Run.
func (n *Node) Entries() (map[string]model.Entry, model.Sync) {
	n.mu.Lock()
	watch := n.watch
	n.mu.Unlock()
	if watch == nil {
		return nil, model.Sync{}
	}

	return watch.Entries()
}

// Regroup makes the entries those of other groups; Sync is not complete before
// they were read.
func (n *Node) Regroup(groups []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.options.Groups = groups
	if n.stop != nil {
		n.stop()
	}
}
