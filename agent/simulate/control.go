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

// Control reads the control documents of all nodes once. Each node uses its own documents, like an agent.
type Control interface {
	// Run keeps the documents current until ctx ends. It calls changed with the family of each changed key,
	// and with an empty family if any may have changed. After an error, Run is called again after a delay.
	Run(ctx context.Context, changed func(family string)) error
	// Entries returns the known keys of families with values, and how completely they are known. The caller
	// owns the map.
	Entries(families []string) (map[string]model.Entry, model.Sync)
}

// documents are the documents of one node.
type documents struct {
	all     Control
	machine *machine
}

// Entries returns the known keys.
func (d documents) Entries() (map[string]model.Entry, model.Sync) {
	return d.all.Entries(d.machine.families())
}

// Read returns the value of a key. The error wraps model.ErrNotFound if there is none.
func (d documents) Read(_ context.Context, key string, _ uint64) (model.Entry, error) {
	entries, _ := d.Entries()
	e, known := entries[key]
	if !known {
		return model.Entry{}, fmt.Errorf("%s: %w", key, model.ErrNotFound)
	}

	return e, nil
}

// Removal returns model.ErrNotFound, because simulated nodes require no signed removals.
func (documents) Removal(context.Context, string) (model.Entry, error) {
	return model.Entry{}, model.ErrNotFound
}

// anybody is the gate of a node that requires no signatures.
type anybody struct{}

// Demands returns false.
func (anybody) Demands() bool { return false }

// Pause accepts every pause.
func (anybody) Pause(context.Context, model.Entry, string) error { return nil }

// Groups accepts all groups.
func (anybody) Groups(context.Context, model.Entry, string) error { return nil }

// openControl returns the control documents of the node.
func (n *Node) openControl(all Control, at *status.Clock) error {
	c, err := desired.OpenControl(desired.ControlOptions{
		Source: documents{all, n.machine}, Gate: anybody{}, Clock: at, Families: n.machine.families, Changed: n.noteControl, Log: n.log,
		Rejected: func(why string) { n.report.Node("", model.NodeRefused, bounds.Text(why)) },
	})
	n.control = c

	return err
}

// noteControl adds the control documents to the state, and joins the operators' groups.
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

// Many nodes of a group read changes over a second, like agents: a limited number at a time.
const (
	wokenAtOnce = 100
	wakeStep    = 10 * time.Millisecond
)

// followControl makes the nodes apply control documents until ctx ends.
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
