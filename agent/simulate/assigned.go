package simulate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// assignment is an active assignment of a node.
type assignment struct {
	model.Entry
	manifest *Manifest
	// pending are the changes of its next run. ran means that it has run.
	pending changes
	ran     bool
	// drifted means that a resource of pending drifted and was not repaired.
	drifted bool
}

func (a *assignment) drift(i int, c model.Change) bool {
	if a.pending != nil && a.pending[i] != nil {
		return false
	}
	a.pending, a.drifted = slices.Clone(a.pending), true // other nodes may share it
	if a.pending == nil {
		a.pending = make(changes, len(a.manifest.Resources))
	}
	a.pending[i] = []model.Change{c}

	return true
}

func (a *assignment) changes(i int, noop bool) []model.Change {
	if noop {
		return a.pending[i]
	}
	out := slices.Clone(a.pending[i])
	for j := range out {
		out[j] = out[j].Done()
	}

	return out
}

// rejection is a rejected assignment with the reason.
type rejection struct {
	model.Entry
	why string
}

// assigned contains the assignments of a node. The goroutine of the runs owns it.
type assigned struct {
	machine *machine
	source  Watched
	// load resolves a value. The error is the reason why nodes reject it. compared contains the differences between manifests.
	load     func(ctx context.Context, e model.Entry) (*Manifest, error)
	compared *comparisons
	status   *status.Node
	report   *reporting.Reporter
	// again is notified when an assignment must be read again.
	again tasks.Signal

	// active are the active assignments, rejected the last rejected ones, by key.
	active   map[string]*assignment
	rejected map[string]rejection
	// named are the active manifests by name, for other goroutines.
	named atomic.Pointer[map[string]*Manifest]
}

// keys returns the sorted keys of the active assignments.
func (a *assigned) keys() []string { return slices.Sorted(maps.Keys(a.active)) }

// inForce returns the active manifest of a name, nil for none.
func (a *assigned) inForce(name string) *Manifest {
	if all := a.named.Load(); all != nil {
		return (*all)[name]
	}

	return nil
}

func (a *assigned) sync(ctx context.Context) bool {
	entries, known := a.source.Entries()
	if !known.Complete() {
		return false
	}
	now, states, watches := map[string]*assignment{}, map[string]model.ManifestState{}, 0
	for _, e := range choose(a.machine.families(), entries) {
		in, problem := a.activate(ctx, e)
		state := model.ManifestState{}
		if in != nil {
			now[e.Key] = in
			state.Revision, state.Digest = in.Revision, in.manifest.Digest
			watches += len(in.manifest.Resources)
		}
		if in == nil || in.Revision != e.Revision {
			state.Seen, state.SeenAt, state.Late = e.Revision, e.Time, problem
		}
		states[e.Key] = state
	}
	for _, key := range a.keys() {
		if e, is := entries[key]; !is || e.Deleted {
			a.report.Node(key, model.NodeUnassigned, key+" is not assigned any more; whatever it made is left as it is")
		}
	}
	a.active = now
	named := map[string]*Manifest{}
	for key, in := range now {
		_, name, _ := model.SplitKey(key)
		named[name] = in.manifest
	}
	a.named.Store(&named)
	a.status.SetAssignments(states)
	a.status.SetWatches(watches, 0, nil)

	return true
}

// choose returns the winning entry of each name: the entry of the first family.
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

// activate returns the assignment of an entry. If it is not valid, it returns the previous assignment with
// the problem.
func (a *assigned) activate(ctx context.Context, e model.Entry) (*assignment, string) {
	before := a.active[e.Key]
	if before != nil && isSame(before.Entry, e) {
		return before, ""
	}
	if known := a.rejected[e.Key]; isSame(known.Entry, e) {
		return before, known.why
	}
	read, err := a.source.Read(ctx, e.Key, e.Revision)
	if err != nil {
		tasks.Pause(ctx, time.Second, nil)
		a.again.Notify()
		return before, err.Error()
	}
	m, err := a.load(ctx, read)
	if err != nil {
		if ctx.Err() == nil {
			a.reject(read, err)
		}
		return before, a.rejected[e.Key].why
	}
	if !m.Expires.IsZero() && a.machine.now().After(m.Expires) {
		return nil, ""
	}
	var from *Manifest
	if before != nil {
		from = before.manifest
	}

	return &assignment{Entry: read, manifest: m, pending: a.compared.between(from, m)}, ""
}

// isSame reports whether two entries of a key are one version. A recreated bucket counts from 1.
func isSame(a, b model.Entry) bool { return a.Revision == b.Revision && a.Time.Equal(b.Time) }

func (a *assigned) reject(e model.Entry, err error) {
	a.rejected[e.Key] = rejection{e, model.LateRejected + bounds.Text(err.Error())}
	run := a.machine.begin(e.Key, e.Revision, model.DigestOf(e.Value), model.CauseManifest)
	run.Refused, run.Errors = true, []string{err.Error()}
	a.report.Run(run)
	a.report.Node("", model.NodeRefused, bounds.Text(err.Error()))
}

// Manifest is a resolved assignment. Nodes share it; it is immutable.
type Manifest struct {
	Digest string
	Noop   bool
	// Expires is the time at which the assignment expires; zero means never.
	Expires   time.Time
	Resources []Resource
}

// Resource is one resource of a manifest.
type Resource struct {
	Ref                     model.Ref
	Alias, Ensure, Provider string
	Source                  model.Position
	// Properties are nil for a sensitive resource.
	Properties json.RawMessage
	Sensitive  bool
}

// changes has the changes of each resource of a manifest, in order; nil for an unchanged resource.
type changes [][]model.Change

// maxCompared is the maximum number of cached comparisons.
const maxCompared = 1000

// comparisons caches the changes between two manifests, because many nodes need them.
type comparisons struct {
	mu   sync.Mutex
	done map[[2]*Manifest]changes
}

// between returns the changes from the manifest before to the manifest after. before may be nil.
func (c *comparisons) between(before, after *Manifest) changes {
	c.mu.Lock()
	defer c.mu.Unlock()
	pair := [2]*Manifest{before, after}
	if out, known := c.done[pair]; known {
		return out
	}
	if c.done == nil || len(c.done) >= maxCompared {
		c.done = map[[2]*Manifest]changes{}
	}
	c.done[pair] = compare(before, after)

	return c.done[pair]
}

func compare(before, after *Manifest) changes {
	known := map[model.Ref]*Resource{}
	if before != nil {
		for i := range before.Resources {
			known[before.Resources[i].Ref] = &before.Resources[i]
		}
	}
	out := make(changes, len(after.Resources))
	for i := range after.Resources {
		r := &after.Resources[i]
		if old := known[r.Ref]; old == nil || !bytes.Equal(old.Properties, r.Properties) {
			out[i] = []model.Change{r.change(old)}
		}
	}

	return out
}

// change returns the change that brings a resource into its state, with the message of its type. old
// is the earlier resource, or nil.
func (r *Resource) change(old *Resource) model.Change {
	switch r.Ref.Type {
	case "file":
		if r.Ensure == "directory" {
			return model.Change{Action: "create_directory", Message: "Would have created directory", Property: "ensure", From: model.EnsureAbsent, To: r.Ensure}
		}
		if old == nil {
			return r.stored(resource.DiffContent{Absent: true})
		}
		return r.stored(old.content())
	case "package":
		return model.Change{Action: "install", Message: "Would have installed", Property: "ensure", From: model.EnsureAbsent, To: cmp.Or(r.Ensure, model.EnsurePresent)}
	case "service":
		return model.Change{Action: "start", Message: "Would have started", Property: "ensure", From: "stopped", To: cmp.Or(r.Ensure, "running")}
	case "exec":
		return model.Change{Action: "execute", Message: "Would have executed"}
	default:
		return model.Change{Action: "store", Message: "Would have created it", Property: "ensure", From: model.EnsureAbsent, To: cmp.Or(r.Ensure, model.EnsurePresent)}
	}
}

// stored returns the change of a file from an earlier content.
func (r *Resource) stored(before resource.DiffContent) model.Change {
	after := r.content()
	out := model.Change{Action: "store", Message: "Would have updated the file", Property: "content", From: resource.DigestWord(before.Digest), To: resource.DigestWord(after.Digest)}
	if before.Absent {
		out.Message, out.From = "Would have created the file", model.EnsureAbsent
	}
	if !r.Sensitive {
		out.Diff = resource.Diff(r.Ref.Name, before, after)
	}

	return out
}

func (r *Resource) content() resource.DiffContent {
	var known struct{ Content string }
	_ = json.Unmarshal(r.Properties, &known) // empty file

	return contentOf(known.Content)
}

func contentOf(text string) resource.DiffContent {
	digest := strings.TrimPrefix(model.DigestOf([]byte(text)), model.DigestPrefix)

	return resource.DiffContent{Snippet: resource.SnippetOf(text), Size: int64(len(text)), Digest: digest}
}

// drifted returns the change that repairs a drifted resource. by is a line that was added to a file.
func (r *Resource) drifted(by string) model.Change {
	if r.Ref.Type != "file" || r.Ensure == "directory" {
		return r.change(r)
	}

	return r.stored(contentOf(r.content().Text + by + "\n"))
}
