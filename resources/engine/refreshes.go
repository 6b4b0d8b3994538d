package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
)

// pendingRefreshes keeps Upstream.Pending of a run equal to its Journal.
type pendingRefreshes struct {
	journal Journal
	up      *plan.Upstream
	log     *slog.Logger
	// added are the refreshes that became pending for the current changes.
	added []model.Ref
	// lost reports that the pending refreshes of earlier runs are unknown.
	lost bool
	// errors are errors of the journal that fail no resource.
	errors []string
}

// recall reads the refreshes that earlier runs left pending.
func (r *pendingRefreshes) recall(ctx context.Context) {
	if r.journal == nil {
		return
	}
	if r.isPart() && !slices.ContainsFunc(r.up.Graph.Nodes(), func(n *plan.Node) bool { return len(n.Subscribes)+len(n.SubscribesElsewhere) > 0 }) {
		return // none of them can have a pending refresh
	}
	pending, err := r.journal.Pending()
	if errors.Is(err, ErrDamagedJournal) && !r.isPart() {
		r.log.WarnContext(ctx, "refreshing all subscribers, the pending refreshes are lost", "error", err)
		pending, r.lost = plan.Refreshable(r.up.Graph.Nodes()), true
		if err = nil; !r.up.Scope.ReadOnly() {
			err = r.journal.Reset(ctx, pending...)
		}
	}
	if err != nil {
		r.errors = append(r.errors, "reading the journal of pending refreshes: "+err.Error())
	}
	r.mark(pending)
}

func (r *pendingRefreshes) mark(refs []model.Ref) {
	for _, ref := range refs {
		r.up.Pending[ref] = true
	}
}

// joined marks the refreshes of nodes that joined during the run, if the pending refreshes of
// earlier runs are lost.
func (r *pendingRefreshes) joined(ctx context.Context, nodes []*plan.Node) error {
	refs := plan.Refreshable(nodes)
	if !r.lost || len(refs) == 0 {
		return nil
	}
	r.mark(refs)
	if r.up.Scope.Noop {
		return nil
	}

	return r.journal.Add(ctx, refs...)
}

// notify records, before nodes change, the refreshes of their subscribers and of the subscribers of
// the manifests that contain them. It writes once for all nodes.
func (r *pendingRefreshes) notify(ctx context.Context, nodes ...*plan.Node) error {
	if r.journal == nil {
		return nil
	}
	var refs []model.Ref
	for _, n := range nodes {
		for _, ref := range r.up.ToNotify(n) {
			if !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		}
	}
	if len(refs) == 0 {
		return nil
	}
	if err := r.journal.Add(ctx, refs...); err != nil {
		return fmt.Errorf("not changed, because the refresh of its subscribers cannot be recorded: %w", err)
	}
	r.mark(refs)
	r.added = append(r.added, refs...)

	return nil
}

// cancelPending clears the refreshes of the current changes if these changed nothing. Otherwise a
// file that cannot be written would restart a service in every run.
func (r *pendingRefreshes) cancelPending(ctx context.Context) {
	for _, ref := range r.added {
		if !slices.ContainsFunc(r.up.Graph.Node(ref).Subscribes, r.up.Results.WasTouched) {
			r.clear(ctx, ref)
		}
	}
	r.added = nil
}

// made clears the refresh of a node after it was made, and reports whether it did. It keeps a
// refresh that will be due again.
func (r *pendingRefreshes) made(ctx context.Context, n *plan.Node) (cleared bool) {
	if cleared = r.up.Pending[n.Ref] && r.journal != nil && !r.up.Results.IsPartlyApplied(n); cleared {
		r.clear(ctx, n.Ref)
	}

	return cleared
}

// restore makes a refresh pending again that failed after made cleared it.
func (r *pendingRefreshes) restore(ctx context.Context, n *plan.Node) {
	if err := r.journal.Add(context.WithoutCancel(ctx), n.Ref); err != nil {
		r.errors = append(r.errors, "recording the pending refresh of "+n.Ref.String()+": "+err.Error())
	}
	r.mark([]model.Ref{n.Ref})
}

func (r *pendingRefreshes) isPart() bool { return r.up.Graph.PartOf() != nil }

// clearUndeclared clears the refreshes of resources that the manifest no longer declares, or that
// no longer subscribe to anything. It does nothing if a child manifest was not read, or if the run
// covers only a part.
func (r *pendingRefreshes) clearUndeclared(ctx context.Context) {
	g := r.up.Graph
	if r.up.Scope.ReadOnly() || r.journal == nil || r.isPart() || slices.ContainsFunc(g.Nodes(), func(n *plan.Node) bool { return plan.IsOpenEnded(n.Resource) }) {
		return
	}
	for ref := range r.up.Pending {
		if n := g.Node(ref); n == nil || len(n.Subscribes) == 0 {
			r.clear(ctx, ref)
		}
	}
}

// clear removes a refresh. If that fails, the next run makes the refresh again.
func (r *pendingRefreshes) clear(ctx context.Context, ref model.Ref) {
	if err := r.journal.Clear(context.WithoutCancel(ctx), ref); err != nil {
		r.errors = append(r.errors, "clearing the pending refresh of "+ref.String()+": "+err.Error())
	}
	delete(r.up.Pending, ref)
}

// Journal stores the pending refreshes of one manifest. A run records the refreshes that a change
// causes before it makes the change, and clears each refresh after it was made.
type Journal interface {
	// Add returns after the refreshes are on disk.
	Add(ctx context.Context, refs ...model.Ref) error
	// Clear removes a refresh. Clearing a refresh that is not pending is not an error.
	Clear(ctx context.Context, ref model.Ref) error
	// Pending returns the refreshes of earlier runs. Its error wraps ErrDamagedJournal if they are
	// lost.
	Pending() ([]model.Ref, error)
	// Reset replaces all pending refreshes by refs.
	Reset(ctx context.Context, refs ...model.Ref) error
}

// ErrDamagedJournal is the error of an unreadable journal.
var ErrDamagedJournal = errors.New("the journal of pending refreshes is damaged")

// FileJournal is a Journal in a file of the state directory. It is safe for concurrent use: the
// runs of a manifest share one FileJournal, and the run lock of the node excludes other processes.
type FileJournal struct {
	mu       sync.Mutex
	host     *host.Host
	path     string
	manifest string
}

type journalRecord struct {
	Manifest string      `json:"manifest"`
	Owed     []model.Ref `json:"owed"`
}

// NewFileJournal returns the journal of a manifest in a state directory. It writes nothing while no
// refresh is pending.
func NewFileJournal(h *host.Host, stateDir, manifest string) *FileJournal {
	sum := sha256.Sum256([]byte(manifest))

	return &FileJournal{host: h, manifest: manifest, path: filepath.Join(stateDir, "owed", hex.EncodeToString(sum[:8])+".json")}
}

// Pending returns the pending refreshes. After an error that wraps ErrDamagedJournal, Add and Clear
// fail until Reset.
func (f *FileJournal) Pending() ([]model.Ref, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.pending()
}

func (f *FileJournal) pending() ([]model.Ref, error) {
	c, err := host.ReadRecord[journalRecord](f.path)
	if err == nil && c.Manifest != f.manifest {
		err = fmt.Errorf("%w: %s is of %q, not of %q", host.ErrDamaged, f.path, c.Manifest, f.manifest)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, host.ErrDamaged):
		return nil, fmt.Errorf("%w: %w", ErrDamagedJournal, err)
	default:
		return c.Owed, err
	}
}

// Reset replaces all pending refreshes by refs. It saves a damaged journal beside, with the suffix
// .damaged and its digest.
func (f *FileJournal) Reset(ctx context.Context, refs ...model.Ref) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.pending(); errors.Is(err, ErrDamagedJournal) {
		if err := f.setAside(ctx); err != nil {
			return fmt.Errorf("keeping the damaged journal: %w", err)
		}
	}

	return f.write(ctx, refs)
}

// setAside copies the damaged journal instead of moving it. Until a new journal exists, the damaged
// journal shows that refreshes may be pending.
func (f *FileJournal) setAside(ctx context.Context) error {
	digest, err := f.host.Digest(ctx, f.path)
	if err != nil {
		return err
	}
	damaged, err := files.Open(f.path)
	if err != nil {
		return err
	}
	defer damaged.Close()

	return f.host.Write(context.WithoutCancel(ctx), f.path+".damaged-"+digest[:16], damaged, files.OwnAttrs(0o600))
}

// Add adds refreshes and returns after they are on disk.
func (f *FileJournal) Add(ctx context.Context, refs ...model.Ref) error {
	return f.change(ctx, func(pending []model.Ref) []model.Ref {
		for _, ref := range refs {
			if !slices.Contains(pending, ref) {
				pending = append(pending, ref)
			}
		}
		return pending
	})
}

// Clear removes a refresh. Clearing a refresh that is not pending is not an error.
func (f *FileJournal) Clear(ctx context.Context, ref model.Ref) error {
	return f.change(ctx, func(pending []model.Ref) []model.Ref {
		return slices.DeleteFunc(pending, func(r model.Ref) bool { return r == ref })
	})
}

func (f *FileJournal) change(ctx context.Context, of func([]model.Ref) []model.Ref) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	pending, err := f.pending()
	if err != nil {
		return err
	}
	before := len(pending)
	if pending = of(pending); len(pending) == before {
		return nil
	}

	return f.write(ctx, pending)
}

func (f *FileJournal) write(ctx context.Context, refs []model.Ref) error {
	if len(refs) == 0 {
		return f.host.Remove(f.path)
	}

	return f.host.WriteRecord(ctx, f.path, journalRecord{Manifest: f.manifest, Owed: refs})
}

// CheckJournal returns an error if the journal at a path is damaged.
func CheckJournal(path string) error {
	_, err := host.ReadRecord[journalRecord](path)

	return err
}
