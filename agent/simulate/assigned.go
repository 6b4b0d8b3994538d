package simulate

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// assignment is an assignment in force on a node.
type assignment struct {
	model.Entry
	manifest *Manifest
	// pending is what its next run changes, ran that it was run.
	pending changes
	ran     bool
}

// rejection is an assignment that was rejected, and why.
type rejection struct {
	model.Entry
	why string
}

// sync takes over what is assigned, and reports whether all of that is known.
func (n *Node) sync(ctx context.Context) bool {
	entries, known := n.link.Assignments.Entries()
	if !known.Complete() {
		return false
	}
	now, states, watches := map[string]*assignment{}, map[string]model.ManifestState{}, 0
	for _, e := range choose(n.Families(), entries) {
		a, problem := n.activate(ctx, e)
		state := model.ManifestState{}
		if a != nil {
			now[e.Key] = a
			state.Revision, state.Digest = a.Revision, a.manifest.Digest
			watches += len(a.manifest.Resources)
		}
		if a == nil || a.Revision != e.Revision {
			state.Seen, state.SeenAt, state.Late = e.Revision, e.Time, problem
		}
		states[e.Key] = state
	}
	for _, key := range slices.Sorted(maps.Keys(n.active)) {
		if e, is := entries[key]; !is || e.Deleted {
			n.report.Node(key, model.NodeUnassigned, key+" is not assigned any more; whatever it made is left as it is")
		}
	}
	n.active = now
	named := map[string]*Manifest{}
	for key, a := range now {
		_, name, _ := model.SplitKey(key)
		named[name] = a.manifest
	}
	n.manifests.Store(&named)
	n.status.SetAssignments(states)
	n.status.SetWatches(watches, 0, nil)

	return true
}

// choose returns the entries that win: of each name that of the first family.
func choose(families []string, entries map[string]model.Entry) []model.Entry {
	var out []model.Entry
	taken := map[string]bool{}
	keys := slices.Sorted(maps.Keys(entries))
	for _, family := range families {
		for _, key := range keys {
			e := entries[key]
			of, name, ok := model.SplitKey(key)
			if ok && of == family && !taken[name] && !e.Deleted && !e.Invalid && e.Refused == "" {
				taken[name] = true
				out = append(out, e)
			}
		}
	}

	return out
}

// activate returns the assignment of an entry, or the one before where that is not valid, with
// the problem.
func (n *Node) activate(ctx context.Context, e model.Entry) (*assignment, string) {
	before := n.active[e.Key]
	if before != nil && isSame(before.Entry, e) {
		return before, ""
	}
	if known := n.rejected[e.Key]; isSame(known.Entry, e) {
		return before, known.why
	}
	read, err := n.link.Assignments.Read(ctx, e.Key, e.Revision)
	if err != nil {
		tasks.Pause(ctx, time.Second, nil)
		n.changed.Notify()
		return before, err.Error()
	}
	m, err := n.fleet.o.Load(ctx, read)
	if err != nil {
		if ctx.Err() == nil {
			n.reject(read, err)
		}
		return before, n.rejected[e.Key].why
	}
	if !m.Expires.IsZero() && n.now().After(m.Expires) {
		return nil, ""
	}
	var from *Manifest
	if before != nil {
		from = before.manifest
	}

	return &assignment{Entry: read, manifest: m, pending: n.fleet.compared.between(from, m)}, ""
}

// isSame reports whether two entries of a key are the same version of it: a bucket that was
// created again counts from 1.
func isSame(a, b model.Entry) bool { return a.Revision == b.Revision && a.Time.Equal(b.Time) }

// reject reports an assignment that is not valid.
func (n *Node) reject(e model.Entry, err error) {
	n.rejected[e.Key] = rejection{e, model.LateRejected + bounds.Text(err.Error())}
	run := n.begin(e.Key, e.Revision, model.DigestOf(e.Value), model.CauseManifest)
	run.Refused, run.Errors = true, []string{err.Error()}
	n.report.Run(run)
	n.report.Node("", model.NodeRefused, bounds.Text(err.Error()))
}
