package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// Control is what operators write about all nodes, which is read once for all of them: each node
// takes over what is about itself, as an agent does.
type Control interface {
	// Run keeps it current until ctx ends, and calls changed with the family of each key that
	// changed, and with an empty one when that may be all of them. An error is not the end: Run is
	// called again after a while.
	Run(ctx context.Context, changed func(family string)) error
	// Entries returns the keys of some families as they are known now, with their values, and how
	// sure that is. The map is the caller's.
	Entries(families []string) (map[string]model.Entry, model.Sync)
}

// documents are those of Control that are about one node.
type documents struct {
	all     Control
	machine *machine
}

// Entries returns the keys as they are known now.
func (d documents) Entries() (map[string]model.Entry, model.Sync) {
	return d.all.Entries(d.machine.families())
}

// Read returns what is known of a key; the error wraps model.ErrNotFound where that is nothing.
func (d documents) Read(_ context.Context, key string, _ uint64) (model.Entry, error) {
	entries, _ := d.Entries()
	e, known := entries[key]
	if !known {
		return model.Entry{}, fmt.Errorf("%s: %w", key, model.ErrNotFound)
	}

	return e, nil
}

// Removal returns model.ErrNotFound: nobody demands that a removal be signed.
func (documents) Removal(context.Context, string) (model.Entry, error) {
	return model.Entry{}, model.ErrNotFound
}

// anybody is the gate of a node that demands no signatures.
type anybody struct{}

// Demands returns false.
func (anybody) Demands() bool { return false }

// Pause accepts every pause.
func (anybody) Pause(context.Context, model.Entry, string) error { return nil }

// Groups accepts all groups.
func (anybody) Groups(context.Context, model.Entry, string) error { return nil }

// openControl makes what has the node take over what operators write about it.
func (n *Node) openControl(all Control, at *status.Clock) error {
	c, err := desired.OpenControl(desired.ControlOptions{
		Source: documents{all, n.machine}, Gate: anybody{}, Clock: at, Families: n.machine.families, Changed: n.noteControl, Log: n.log,
		Rejected: func(why string) { n.report.Node("", model.NodeRefused, bounds.Text(why)) },
	})
	n.control = c

	return err
}

// noteControl shows what operators wrote about the node, and has it be in the groups that they
// put it into.
func (n *Node) noteControl() {
	n.control.Show(n.status.SetControl)
	if n.machine.join(n.control.Groups()) {
		n.link.Assignments.SetGroups(slices.Clone(n.machine.groups()))
		n.groupsChanged.Notify()
		n.changed.Notify()
		n.control.Wake()
		n.status.Changed.Notify()
	}
	n.controlChanged.Notify()
}

// The nodes of a group read what is new over a second where they are many, as agents do: so many at
// once each time.
const (
	wokenAtOnce = 100
	wakeStep    = 10 * time.Millisecond
)

// followControl has the nodes take over what operators write about them, until ctx ends.
func (f *Fleet) followControl(ctx context.Context) {
	named := map[string][]*Node{"": f.nodes, model.GroupFamily(model.GroupAll): f.nodes}
	for _, n := range f.nodes {
		named[model.NodeFamily(n.machine.Node)] = []*Node{n}
	}
	tasks.Repeat(ctx, f.o.Log, "reading control documents", nil, func(ctx context.Context) error {
		return f.o.Control.Run(ctx, func(family string) {
			members := named[family]
			if members == nil {
				members = slices.DeleteFunc(slices.Clone(f.nodes), func(n *Node) bool { return !slices.Contains(n.machine.families(), family) })
			}
			for i, n := range members {
				if i > 0 && i%wokenAtOnce == 0 {
					tasks.Pause(ctx, wakeStep, nil)
				}
				n.control.Wake()
			}
		})
	})
}
